/** A topic's messages. Loads pages while scrolling in both directions, and keeps its position when items are added. */
import { type KeyboardEvent, useCallback, useEffect, useLayoutEffect, useRef, useState } from "react";
import { Virtualizer, type VirtualizerHandle } from "virtua";
import { useViewer } from "../session/viewer";
import { indexOfTimestamp } from "../timeline/window";
import { Button } from "../ui/button";
import { Icon } from "../ui/icons";
import { useTranslation } from "../ui/preferences";
import { EmptyState, ErrorState, LoadingState } from "../ui/states";
import { useValue } from "../ui/value";
import { MessageRow } from "./message-row";
import type { Message } from "./operations";
import { type PendingMessage, useOutbox } from "./outbox";
import { PendingRow } from "./pending-row";
import { firstUnreadId, rowContext } from "./row-context";
import type { TopicView } from "./topic-view";

const AT_END_PX = 60;
const PINNED_PX = 2;
const LOAD_WITHIN_PX = 900;

type Row = Message | PendingMessage;
const isPending = (row: Row): row is PendingMessage => "key" in row;

interface Props {
  topicView: TopicView;
  topicId: string;
  readUpTo: string | null;
  communityId: string;
  /** Whether the viewer may delete messages of others. */
  mayModerate: boolean;
  editedId: string | null;
  setEditedId: (id: string | null) => void;
}

export function Timeline(props: Props) {
  const { topicView, topicId, readUpTo, editedId, setEditedId } = props;
  const { t } = useTranslation();
  const viewer = useViewer();
  const state = useValue(topicView.feed.state);
  const allPending = useValue(useOutbox().pending);
  const list = useRef<VirtualizerHandle>(null);
  const box = useRef<HTMLDivElement>(null);
  const isAtEnd = useRef(true);
  /** Whether nothing was scrolled since the end was reached, so that a change of sizes must not hide it. */
  const isPinned = useRef(true);
  const lastScrollTop = useRef(0);
  const renderedWindow = useRef(state.window);
  const [isAwayFromEnd, setIsAwayFromEnd] = useState(false);
  const [focusedId, setFocusedId] = useState<string | null>(null);
  const { items, hasOlder, hasNewer } = state.window;
  const pending = allPending.filter((entry) => entry.topicId === topicId && !entry.hasArrived);
  const rows: Row[] = hasNewer ? [...items] : [...items, ...pending];
  const shift = state.isShifted && renderedWindow.current !== state.window;
  const unreadFromId = firstUnreadId(items, hasOlder, readUpTo, viewer.id);
  const target = state.at === null ? undefined : items[indexOfTimestamp(items, state.at)];

  const handleViewportChange = useCallback(() => {
    const viewport = list.current;
    const { window, phase } = topicView.feed.state.get();
    if (!viewport || !box.current || phase !== "ready") return;
    // The virtualizer learns of a new height later than this function does.
    const { scrollHeight, scrollTop, clientHeight } = box.current;
    const below_px = scrollHeight - scrollTop - clientHeight;
    isAtEnd.current = below_px < AT_END_PX && !window.hasNewer;
    const hasScrolledUp = scrollTop < lastScrollTop.current;
    lastScrollTop.current = scrollTop;
    if (below_px <= PINNED_PX && !window.hasNewer) isPinned.current = true;
    else if (hasScrolledUp || window.hasNewer) isPinned.current = false;
    isAtEnd.current ||= isPinned.current;
    setIsAwayFromEnd(below_px > clientHeight || window.hasNewer);
    if (viewport.scrollOffset < LOAD_WITHIN_PX) void topicView.feed.loadOlder();
    if (below_px < LOAD_WITHIN_PX) void topicView.feed.loadNewer();
    const lastVisibleIndex = viewport.findItemIndex(
      viewport.scrollOffset + viewport.viewportSize - AT_END_PX,
    );
    const lastVisible = isAtEnd.current ? window.items.at(-1) : window.items[lastVisibleIndex];
    if (lastVisible && document.visibilityState === "visible") topicView.markRead(lastVisible.timestamp);
  }, [topicView]);

  // biome-ignore lint/correctness/useExhaustiveDependencies: scrolls only after the window was opened.
  useLayoutEffect(() => {
    if (state.openCount === 0) return;
    if (target) list.current?.scrollToIndex(items.indexOf(target), { align: "center" });
    else list.current?.scrollToIndex(rows.length - 1, { align: "end" });
    isAtEnd.current = !target;
    isPinned.current = !target;
  }, [state.openCount]);

  // biome-ignore lint/correctness/useExhaustiveDependencies: scrolls only if the end was visible before.
  useLayoutEffect(() => {
    if (isAtEnd.current && !shift && state.openCount > 0)
      list.current?.scrollToIndex(rows.length - 1, { align: "end" });
    renderedWindow.current = state.window;
  }, [state.window, pending.length]);

  // biome-ignore lint/correctness/useExhaustiveDependencies: a change may make an end visible without a scroll.
  useEffect(() => {
    const frame = requestAnimationFrame(handleViewportChange);
    return () => cancelAnimationFrame(frame);
  }, [state, handleViewportChange]);

  useEffect(() => {
    document.addEventListener("visibilitychange", handleViewportChange);
    return () => document.removeEventListener("visibilitychange", handleViewportChange);
  }, [handleViewportChange]);

  // A keyboard, a longer draft or a banner takes space from the timeline, and rows grow when they are measured. The
  // end stays visible until the user scrolls away from it.
  const keepEnd = useCallback((element: HTMLDivElement) => {
    box.current = element;
    const observer = new ResizeObserver(() => {
      if (isPinned.current) element.scrollTop = element.scrollHeight;
    });
    for (const observed of [element, ...element.children]) observer.observe(observed);
    return () => {
      box.current = null;
      observer.disconnect();
    };
  }, []);

  const currentRows = useRef(rows);
  currentRows.current = rows;
  const moveFocus = useCallback((event: KeyboardEvent<HTMLElement>, id: string) => {
    const step = event.key === "ArrowUp" ? -1 : event.key === "ArrowDown" ? 1 : 0;
    const index = currentRows.current.findIndex((row) => !isPending(row) && row.id === id) + step;
    const next = currentRows.current[index];
    if (step === 0 || !next || isPending(next) || event.target !== event.currentTarget) return;
    event.preventDefault();
    setFocusedId(next.id);
    list.current?.scrollToIndex(index, { align: "nearest" });
    requestAnimationFrame(() => document.getElementById(`message-${next.id}`)?.focus());
  }, []);

  if (state.phase === "loading") return <LoadingState rows={8} />;
  if (state.phase === "failed")
    return <ErrorState error={state.error} retry={() => topicView.feed.open(state.at)} />;
  if (rows.length === 0)
    return <EmptyState icon="chat" title={t("topic.empty")} hint={t("topic.emptyHint")} />;
  const tabStopId = focusedId ?? items.at(-1)?.id;
  return (
    <div className="relative flex min-h-0 grow flex-col">
      {state.edge === "older" && <LoadingNote text={t("loading")} />}
      {state.edgeError !== null && (
        <button
          type="button"
          className="bg-bad-ground px-4 py-2 text-sm text-bad"
          onClick={handleViewportChange}
        >
          {t("timeline.edgeFailed")}
        </button>
      )}
      <div
        ref={keepEnd}
        className="thin-scroll flex min-h-0 grow flex-col overflow-y-auto overscroll-contain pb-3 [overflow-anchor:none] px-[max(0px,calc((100%-64rem)/2))]"
        data-testid="timeline"
        tabIndex={-1}
      >
        <div className="grow" />
        <Virtualizer
          ref={list}
          as="ol"
          item="li"
          shift={shift}
          data={rows}
          onScroll={handleViewportChange}
          bufferSize={400}
        >
          {(row, index) => {
            const previous = items[index - 1];
            return isPending(row) ? (
              <PendingRow key={row.key} entry={row} viewer={viewer} />
            ) : (
              <MessageRow
                key={row.id}
                message={row}
                {...rowContext(row, previous, unreadFromId)}
                topicView={topicView}
                isOwn={row.author.id === viewer.id}
                communityId={props.communityId}
                mayModerate={props.mayModerate}
                isTarget={row === target || (target !== undefined && row.id === target.id)}
                isEditing={editedId === row.id}
                setEditedId={setEditedId}
                isTabStop={row.id === tabStopId}
                onFocus={setFocusedId}
                onKeyDown={moveFocus}
              />
            );
          }}
        </Virtualizer>
      </div>
      {isAwayFromEnd && (
        <Button
          className="rise absolute bottom-4 left-1/2 -translate-x-1/2 shadow-raised"
          onClick={() => {
            if (hasNewer) void topicView.feed.open(null);
            else list.current?.scrollToIndex(rows.length - 1, { align: "end" });
          }}
        >
          <Icon name="down" className="size-4" />
          {t("timeline.newest")}
        </Button>
      )}
    </div>
  );
}

function LoadingNote({ text }: { text: string }) {
  return (
    <p
      role="status"
      className="absolute left-1/2 top-2 z-10 -translate-x-1/2 rounded-full border border-line bg-raised px-3 py-0.5 text-xs text-quiet"
    >
      {text}
    </p>
  );
}
