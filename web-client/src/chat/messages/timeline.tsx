/** A topic's messages. Loads pages while scrolling in both directions, and keeps its position when items are added. */
import {
  type KeyboardEvent,
  useCallback,
  useEffect,
  useLayoutEffect,
  useMemo,
  useRef,
  useState,
} from "react";
import { Virtualizer, type VirtualizerHandle } from "virtua";
import { useWatchedMessages, WATCHED_MAX_IN_CHAT } from "../../api/current-text";
import type { CommunityRights } from "../../moderation/rights";
import { useViewer } from "../../session/viewer";
import { compareTimestamps, indexOfTimestamp } from "../../timeline/window";
import { useTranslation } from "../../ui/preferences";
import { EmptyState, ErrorState, LoadingState } from "../../ui/states";
import { useValue } from "../../ui/value";
import { isIn, type PendingMessage, useOutbox } from "../composer/outbox";
import type { Message } from "../operations";
import type { TopicView } from "../topics/topic-view";
import { MessageRow } from "./message-row";
import { PendingMessageRow } from "./pending-row";
import { firstUnreadId, hasUnreadBefore, rowContext, unreadAfter } from "./row-context";
import { createSeenMessages, messagesInView } from "./seen-messages";
import { NewestButton, UnreadAboveButton } from "./unread-buttons";

const AT_END_PX = 60;
const AT_EXACT_END_PX = 2;
const LOAD_WITHIN_PX = 900;
/** How much of the read messages is shown above the line "New". */
const ABOVE_LINE_PX = 72;

type TimelineRow = Message | PendingMessage;
const isPending = (row: TimelineRow): row is PendingMessage => "key" in row;

type Geometry = Pick<Element, "scrollTop" | "scrollHeight" | "clientHeight">;

const geometryOf = ({ scrollTop, scrollHeight, clientHeight }: Element): Geometry => ({
  scrollTop,
  scrollHeight,
  clientHeight,
});

/** Returns whether the user has scrolled up. A change of a height moves the content too, but is not the user's act. */
function isScrolledUp(now: Geometry, last: Geometry): boolean {
  const hasSameHeights = now.scrollHeight === last.scrollHeight && now.clientHeight === last.clientHeight;
  return hasSameHeights && now.scrollTop < last.scrollTop;
}

interface Props {
  topicView: TopicView;
  topicId: string;
  /** Id of the parent message of a thread; null for other topics. */
  parentId: string | null;
  /** Timestamp of the message to which the page's address leads; null if it leads to none. */
  linkedAt: string | null;
  /** The number of unread messages, as the server counted them last. */
  unreadCount: number;
  communityId: string;
  /** Whether the messages are those of a conversation, which nobody moderates, or of a thread of one. */
  isInConversation: boolean;
  /** The viewer's rights in the community. The object must be memoised. */
  rights: CommunityRights;
  editedId: string | null;
  setEditedId: (id: string | null) => void;
}

export function MessageTimeline(props: Props) {
  const { topicView, topicId, parentId, linkedAt, editedId, setEditedId } = props;
  const { t } = useTranslation();
  const viewer = useViewer();
  const state = useValue(topicView.feed.state);
  const allPending = useValue(useOutbox().pending);
  const list = useRef<VirtualizerHandle>(null);
  const box = useRef<HTMLDivElement>(null);
  const isAtEnd = useRef(true);
  /** Whether the user has reached the end and not scrolled up since. If so, a change of sizes must not hide the end. */
  const isFollowingEnd = useRef(true);
  const lastGeometry = useRef<Geometry>({ scrollTop: 0, scrollHeight: 0, clientHeight: 0 });
  const renderedWindow = useRef(state.window);
  const [below, setBelow] = useState<"nothing" | "little" | "much">("nothing");
  /** Whether a link has opened the window behind unread messages, so that the read mark stays where it is. */
  const mayHaveSkipped = useRef(false);
  const [hasSkipped, setHasSkipped] = useState(false);
  /** Whether messages have arrived at the end while the tab was hidden. */
  const hasMissed = useRef(false);
  const [focusedId, setFocusedId] = useState<string | null>(null);
  const pins = useValue(topicView.pins.messages);
  const { items, hasOlder, hasNewer } = state.window;
  useWatchedMessages(quotesOfOtherTopics(items), WATCHED_MAX_IN_CHAT);
  const pending = allPending.filter((entry) => isIn(entry, topicId, parentId) && !entry.hasArrived);
  const rows: TimelineRow[] = hasNewer ? [...items] : [...items, ...pending];
  const shift = state.isShifted && renderedWindow.current !== state.window;
  const seenUpTo = useValue(topicView.read.seenUpTo);
  const unreadFromId = firstUnreadId(items, hasOlder, useValue(topicView.read.newAfter), viewer.id);
  const isLinked = state.at !== null && state.at === linkedAt;
  const target = isLinked ? items[indexOfTimestamp(items, linkedAt)] : undefined;

  const seen = useMemo(
    () =>
      createSeenMessages(
        () => messagesInView(box.current, topicView.feed.state.get().window.items),
        ({ first, last }) => {
          const { window } = topicView.feed.state.get();
          const { seenUpTo, see } = topicView.read;
          mayHaveSkipped.current &&= hasUnreadBefore(first, window, seenUpTo.get(), viewer.id);
          setHasSkipped(mayHaveSkipped.current);
          if (!mayHaveSkipped.current) see(last.timestamp);
        },
      ),
    [topicView, viewer.id],
  );
  useEffect(() => seen.stop, [seen]);

  const handleViewportChange = useCallback(() => {
    const viewport = list.current;
    const { window, phase } = topicView.feed.state.get();
    if (!viewport || !box.current || phase !== "ready") return;
    // The virtualizer learns of a new height later than this function does.
    const { scrollHeight, scrollTop, clientHeight } = box.current;
    const below_px = scrollHeight - scrollTop - clientHeight;
    const hasScrolledUp = isScrolledUp(box.current, lastGeometry.current);
    lastGeometry.current = geometryOf(box.current);
    isAtEnd.current = below_px < AT_END_PX && !window.hasNewer;
    if (below_px <= AT_EXACT_END_PX && !window.hasNewer) isFollowingEnd.current = true;
    else if (hasScrolledUp || window.hasNewer) isFollowingEnd.current = false;
    isAtEnd.current ||= isFollowingEnd.current;
    setBelow(below_px > clientHeight || window.hasNewer ? "much" : isAtEnd.current ? "nothing" : "little");
    if (viewport.scrollOffset < LOAD_WITHIN_PX) void topicView.feed.loadOlder();
    if (below_px < LOAD_WITHIN_PX) void topicView.feed.loadNewer();
    seen.check();
  }, [topicView, seen]);

  /** Returns the number of messages that the viewer has not seen, apart from those that a link has skipped. */
  function newCountBelow(): number {
    if (hasSkipped) return 0;
    const loaded = unreadAfter(items, seenUpTo, viewer.id).length;
    return hasNewer ? Math.max(loaded, props.unreadCount) : loaded;
  }

  /** Shows the line "New" near the top, or the end if everything below the line fits into the window. */
  function scrollToLine() {
    const index = items.findIndex(({ id }) => id === unreadFromId);
    if (index >= 0) list.current?.scrollToIndex(index, { align: "start", offset: -ABOVE_LINE_PX });
  }

  // biome-ignore lint/correctness/useExhaustiveDependencies: scrolls only after the window was opened.
  useLayoutEffect(() => {
    if (state.openCount === 0) return;
    if (target) list.current?.scrollToIndex(items.indexOf(target), { align: "center" });
    else if (unreadFromId) scrollToLine();
    else list.current?.scrollToIndex(rows.length - 1, { align: "end" });
    mayHaveSkipped.current = target !== undefined;
    setHasSkipped(false);
    isAtEnd.current = !target && !unreadFromId;
    isFollowingEnd.current = isAtEnd.current;
  }, [state.openCount]);

  // Whoever sends a message wants to see it, also after scrolling up.
  const pendingCount = useRef(pending.length);
  useLayoutEffect(() => {
    if (pending.length > pendingCount.current) {
      isAtEnd.current = true;
      isFollowingEnd.current = true;
    }
    pendingCount.current = pending.length;
  }, [pending.length]);

  // biome-ignore lint/correctness/useExhaustiveDependencies: scrolls only if the end was visible before.
  useLayoutEffect(() => {
    const isHidden = document.visibilityState !== "visible";
    const { hasNewer: hadNewer, items: oldItems } = renderedWindow.current;
    const last = oldItems.at(-1);
    renderedWindow.current = state.window;
    if (last && !hadNewer && unreadAfter(items, last.timestamp, viewer.id).length > 0) {
      // The line stands above messages that arrive while nobody watches the end.
      hasMissed.current ||= isHidden && isAtEnd.current;
      const hadSeenAll = compareTimestamps(last.timestamp, seenUpTo) <= 0;
      if (hasMissed.current || (hadSeenAll && !isAtEnd.current)) topicView.read.moveLine();
    }
    if (isAtEnd.current && !shift && !hasMissed.current && state.openCount > 0)
      list.current?.scrollToIndex(rows.length - 1, { align: "end" });
  }, [state.window, pending.length]);

  // biome-ignore lint/correctness/useExhaustiveDependencies: a change may make an end visible without a scroll.
  useEffect(() => {
    const frame = requestAnimationFrame(handleViewportChange);
    return () => cancelAnimationFrame(frame);
  }, [state, handleViewportChange]);

  const returnToLine = useRef(() => {});
  returnToLine.current = () => {
    if (!hasMissed.current || document.visibilityState !== "visible") return;
    hasMissed.current = false;
    isAtEnd.current = false;
    isFollowingEnd.current = false;
    scrollToLine();
  };
  useEffect(() => {
    function handleVisibility() {
      returnToLine.current();
      handleViewportChange();
    }
    document.addEventListener("visibilitychange", handleVisibility);
    return () => document.removeEventListener("visibilitychange", handleVisibility);
  }, [handleViewportChange]);

  // A keyboard, a longer draft or a banner takes space from the timeline, and rows grow when they are measured. The
  // end stays visible until the user scrolls away from it.
  const keepEnd = useCallback((element: HTMLDivElement) => {
    box.current = element;
    const observer = new ResizeObserver(() => {
      if (isFollowingEnd.current) element.scrollTop = element.scrollHeight;
      lastGeometry.current = geometryOf(element);
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
  const newCount = newCountBelow();
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
              <PendingMessageRow key={row.key} entry={row} viewer={viewer} />
            ) : (
              <MessageRow
                key={row.id}
                message={row}
                {...rowContext(row, previous, unreadFromId)}
                topicView={topicView}
                isPinned={pins.some(({ id }) => id === row.id)}
                isOwn={row.author.id === viewer.id}
                communityId={props.communityId}
                isInConversation={props.isInConversation}
                rights={props.rights}
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
      {hasSkipped && props.unreadCount > 0 && (
        <UnreadAboveButton count={props.unreadCount} onClick={() => topicView.feed.open(seenUpTo)} />
      )}
      {(below === "much" || (below === "little" && newCount > 0)) && (
        <NewestButton
          count={newCount}
          onClick={() => {
            mayHaveSkipped.current = false;
            if (hasNewer) void topicView.feed.open(null);
            else list.current?.scrollToIndex(rows.length - 1, { align: "end" });
          }}
        />
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

/** Returns the quoted messages of other topics, those of the latest quotes first. */
function quotesOfOtherTopics(items: readonly Message[]) {
  const quoted = items.flatMap(({ topicId, quote }) => {
    const message = quote?.message;
    return message && message.topicId !== topicId ? [message] : [];
  });
  return quoted.reverse();
}
