/**
 * The thread of a message: a panel beside the topic, and on narrow screens a page that covers the topic. The script of
 * its contents is loaded with the first thread.
 */
import { type KeyboardEvent, useEffect, useRef, useState } from "react";
import { useQuery } from "urql";
import { LOAD_FAILURE, lazyModule } from "../../app/lazy-screen";
import { IconButton } from "../../ui/button";
import { useTranslation } from "../../ui/preferences";
import { ErrorState, LoadingState } from "../../ui/states";
import { useValue } from "../../ui/value";
import { LARGE, useIsAtLeast } from "../../ui/window-width";
import { useOutbox } from "../composer/outbox";
import type { TopicSummary } from "../topics/topic-heading";
import type { TopicView } from "../topics/topic-view";
import { ParentMessage } from "./operations";

const useContents = lazyModule(() => import("./thread-contents"));

export interface ThreadPanelProps {
  /** The topic of the parent message. */
  topic: TopicSummary;
  topicView: TopicView;
  parentId: string;
  /** Timestamp of the reply to show; null for the latest ones. */
  reply: string | null;
  onClose: () => void;
  /** Called when the thread begins or ends to cover the topic. */
  onCover: (isCovered: boolean) => void;
}

export function ThreadPanel(props: ThreadPanelProps) {
  const { topic, topicView, parentId, reply, onClose, onCover } = props;
  const { t } = useTranslation();
  const isWide = useIsAtLeast(LARGE);
  const panel = useRef<HTMLElement>(null);
  const heading = useRef<HTMLHeadingElement>(null);
  const Heading = isWide ? "h2" : "h1";
  const { items } = useValue(topicView.feed.state).window;
  const [{ data, error }, load] = useQuery({ query: ParentMessage, variables: { id: parentId } });
  const parent = items.find(({ id }) => id === parentId) ?? data?.message;
  const started = useStartedThread(parentId);
  const threadId = started ?? parent?.thread?.topicId ?? null;
  const { module: contents, retry } = useContents();
  const failure = (!parent && error) || (retry && LOAD_FAILURE);

  useEffect(() => {
    onCover(!isWide);
    return () => onCover(false);
  }, [isWide, onCover]);
  // The message field may have taken the focus.
  useEffect(() => {
    if (!isWide && !panel.current?.contains(document.activeElement)) heading.current?.focus();
  }, [isWide]);

  function handleKey(event: KeyboardEvent) {
    if (event.key !== "Escape" || event.defaultPrevented) return;
    // Escape closes an open dialog or menu alone.
    if (event.target instanceof Element && event.target.closest("dialog, [popover]")) return;
    event.preventDefault();
    onClose();
  }

  function tryAgain() {
    // The button that has the focus goes away.
    heading.current?.focus();
    retry?.();
    if (!parent && error) load({ requestPolicy: "network-only" });
  }

  return (
    <aside
      ref={panel}
      aria-labelledby="thread-title"
      data-testid="thread"
      onKeyDown={handleKey}
      className="absolute inset-0 z-10 flex min-h-0 flex-col bg-paper lg:static lg:w-[26rem] lg:shrink-0 lg:border-l lg:border-line"
    >
      <header className="flex min-h-12 items-center gap-2 border-b border-line px-3 sm:px-4">
        {!isWide && <IconButton icon="back" label={t("back")} onClick={onClose} />}
        <div className="min-w-0 grow">
          <Heading
            ref={heading}
            id="thread-title"
            tabIndex={-1}
            className="truncate font-semibold outline-none"
          >
            {t("thread.title")}
          </Heading>
          {!isWide && <p className="truncate text-sm text-quiet">{topic.title}</p>}
        </div>
        {contents && parent && threadId !== null && (
          <contents.ThreadActions threadId={threadId} parent={parent} />
        )}
        {isWide && <IconButton icon="close" label={t("thread.close")} onClick={onClose} />}
      </header>
      {contents && parent ? (
        <contents.ThreadContents threadId={threadId} topic={topic} parent={parent} reply={reply} />
      ) : failure ? (
        <ErrorState error={failure} retry={tryAgain} />
      ) : (
        <LoadingState rows={4} />
      )}
    </aside>
  );
}

/** Returns the id of the thread that the viewer's own first reply has started; null before. */
function useStartedThread(parentId: string): string | null {
  const outbox = useOutbox();
  const [started, setStarted] = useState<string | null>(null);
  useEffect(
    () => outbox.onSent((message, { replyTo }) => replyTo === parentId && setStarted(message.topicId)),
    [outbox, parentId],
  );
  return started;
}
