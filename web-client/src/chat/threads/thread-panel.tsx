/**
 * The thread of a message: the message, its replies, and a field for a reply. It is a panel beside the topic, and on
 * narrow screens a page that covers the topic.
 */
import {
  type KeyboardEvent,
  type ReactNode,
  type RefObject,
  useCallback,
  useEffect,
  useRef,
  useState,
} from "react";
import { useQuery } from "urql";
import { useCurrent } from "../../api/current-text";
import { dateAndTime, dateOf } from "../../i18n/times";
import { useViewer } from "../../session/viewer";
import { Avatar } from "../../ui/avatar";
import { IconButton } from "../../ui/button";
import { useTranslation } from "../../ui/preferences";
import { EmptyState, ErrorState, LoadingState } from "../../ui/states";
import { useValue } from "../../ui/value";
import { LARGE, useIsAtLeast } from "../../ui/window-width";
import { MessageComposer } from "../composer/composer";
import { useOutbox } from "../composer/outbox";
import { MessageBody } from "../messages/message-body";
import { PendingMessageRow } from "../messages/pending-row";
import { type Message, type QuotedMessage, TopicHeader } from "../operations";
import { isConversation, JoinedTopic } from "../topics/joined-topic";
import type { TopicSummary } from "../topics/topic-heading";
import type { TopicView } from "../topics/topic-view";
import { FollowButton } from "./follow-button";
import { ThreadOpenerProvider } from "./opener";
import { ParentMessage } from "./operations";
import { ThreadMuteButton } from "./thread-mute-button";

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
  const threadId = started ?? parent?.thread?.id ?? null;

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
        {threadId !== null && (
          <FollowButton parentId={parentId} replyCount={parent?.thread?.replyCount ?? 0} />
        )}
        {threadId !== null && parent && <ThreadMuteButton threadId={threadId} parent={parent} />}
        {isWide && <IconButton icon="close" label={t("thread.close")} onClick={onClose} />}
      </header>
      {!parent && error && <ErrorState error={error} retry={() => load({ requestPolicy: "network-only" })} />}
      {!parent && !error && <LoadingState rows={4} />}
      {parent && <ThreadParent message={parent} />}
      {parent && (
        <ThreadOpenerProvider value={null}>
          <ThreadContent threadId={threadId} topic={topic} parent={parent} reply={reply} />
        </ThreadOpenerProvider>
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

function ThreadParent({ message: loaded }: { message: Message }) {
  const { t, language } = useTranslation();
  const message = useCurrent(loaded);
  const { author, timestamp, deletedAt } = message;
  return (
    <article
      aria-label={t("thread.parent", { name: author.name })}
      data-testid="thread-parent"
      className="thin-scroll flex max-h-[35%] items-start shrink-0 gap-3 overflow-y-auto border-b border-line px-4 py-3"
    >
      <Avatar user={author} />
      <div className="min-w-0 grow">
        <p className="flex flex-wrap items-baseline gap-x-2">
          <span className="font-semibold">{author.name}</span>
          <time dateTime={dateOf(timestamp).toISOString()} className="text-xs text-quiet">
            {dateAndTime(language, dateOf(timestamp))}
          </time>
        </p>
        {deletedAt ? (
          <p className="text-quiet italic">{t("message.deleted")}</p>
        ) : (
          <MessageBody message={message} />
        )}
      </div>
    </article>
  );
}

interface ThreadContentProps {
  /** Id of the thread; null before the first reply. */
  threadId: string | null;
  topic: TopicSummary;
  parent: Message;
  reply: string | null;
}

/** The replies, or the field for the first one. The field stays until the thread that a reply has started is open. */
function ThreadContent({ threadId, topic, parent, reply }: ThreadContentProps) {
  const [isReplaced, setIsReplaced] = useState(threadId !== null);
  const [caret, setCaret] = useState<number | null>(null);
  const [quoted, setQuoted] = useState<QuotedMessage | null>(null);
  const field = useRef<HTMLTextAreaElement>(null);
  const replace = useCallback(() => {
    const { current } = field;
    if (current && current === document.activeElement) setCaret(current.selectionStart);
    setIsReplaced(true);
  }, []);
  return (
    <>
      {!isReplaced && (
        <FirstReply
          topic={topic}
          parent={parent}
          hasThread={threadId !== null}
          field={field}
          quoted={quoted}
          setQuoted={setQuoted}
        />
      )}
      {threadId !== null && (
        <ThreadReplies
          id={threadId}
          topic={topic}
          reply={reply}
          placeholder={isReplaced ? <LoadingState rows={4} /> : null}
          caret={caret}
          initialQuote={quoted}
          onOpened={replace}
        />
      )}
    </>
  );
}

interface ThreadRepliesProps {
  id: string;
  topic: TopicSummary;
  reply: string | null;
  /** Shown until the replies are. */
  placeholder: ReactNode;
  caret: number | null;
  initialQuote: QuotedMessage | null;
  onOpened: () => void;
}

function ThreadReplies({ id, topic, reply, placeholder, ...more }: ThreadRepliesProps) {
  const { t } = useTranslation();
  const [{ data, error, stale }, load] = useQuery({
    query: TopicHeader,
    variables: { id },
    requestPolicy: "network-only",
  });
  const reload = useCallback(() => load({ requestPolicy: "network-only" }), [load]);
  const thread = data?.topic;
  if (error && !thread) return <ErrorState error={error} retry={reload} />;
  if (!thread) return placeholder;
  // The archive and the slow mode of the topic apply to its threads.
  const { archivedAt, slowModeSeconds } = topic;
  return (
    <JoinedTopic
      topic={{ ...thread, title: t("thread.title"), archivedAt, slowModeSeconds, community: topic.community }}
      isStale={stale}
      at={reply}
      isInConversation={isConversation(topic)}
      label={t("thread.reply")}
      placeholder={placeholder}
      {...more}
      onRemoved={reload}
      reloadHeader={reload}
    />
  );
}

interface FirstReplyProps {
  topic: TopicSummary;
  parent: Message;
  /** Whether somebody has started the thread, which is being opened. */
  hasThread: boolean;
  field: RefObject<HTMLTextAreaElement | null>;
  quoted: QuotedMessage | null;
  setQuoted: (message: QuotedMessage | null) => void;
}

/** The field for the first reply, which starts the thread. */
function FirstReply({ topic, parent, hasThread, field, quoted, setQuoted }: FirstReplyProps) {
  const { t } = useTranslation();
  const viewer = useViewer();
  const pending = useValue(useOutbox().pending).filter(({ replyTo }) => replyTo === parent.id);
  useEffect(() => {
    if (matchMedia("(pointer: fine)").matches) field.current?.focus();
  }, [field]);
  const { viewerMutedUntil, archivedAt } = topic.community;
  return (
    <>
      <div className="min-h-0 grow overflow-y-auto">
        {pending.length === 0 &&
          (hasThread ? (
            <LoadingState rows={4} />
          ) : (
            <EmptyState icon="chat" title={t("thread.empty")} hint={t("thread.emptyHint")} />
          ))}
        {pending.map((entry) => (
          <PendingMessageRow key={entry.key} entry={entry} viewer={viewer} />
        ))}
      </div>
      {!parent.deletedAt && (
        <MessageComposer
          topicId={topic.id}
          topicTitle={topic.title}
          replyTo={parent.id}
          quoted={quoted}
          onQuote={setQuoted}
          onQuoteEnd={() => setQuoted(null)}
          label={t("thread.reply")}
          communityId={topic.community.id}
          archived={archivedAt ? "community" : topic.archivedAt ? "topic" : null}
          mutedUntil={viewerMutedUntil}
          nextAt={0}
          field={field}
          onSent={() => {}}
          onEditLast={() => {}}
        />
      )}
    </>
  );
}
