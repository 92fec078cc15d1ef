/** Decides which messages the viewer has seen: those that stayed in view for a moment, in a visible tab. */
import { compareTimestamps } from "../../timeline/window";
import type { Message } from "../operations";

/** How long a message is in view until it counts as seen. */
export const SEEN_AFTER_MS = 300;
/** How much of a message that is cut off at the bottom must be in view. */
const VISIBLE_MIN_PX = 60;

/** The first and the last message in view. */
export interface MessagesInView {
  first: Message;
  last: Message;
}

export interface SeenMessages {
  /** Looks at the messages in view, and once more after a moment. Call it whenever they may have changed. */
  check(): void;
  stop(): void;
}

/**
 * Calls `onSeen` with the messages that were in view throughout a moment. `inView` returns the messages in view now, or
 * null if none are.
 */
export function createSeenMessages(
  inView: () => MessagesInView | null,
  onSeen: (seen: MessagesInView) => void,
): SeenMessages {
  let timer: ReturnType<typeof setTimeout> | undefined;
  function check(): void {
    if (timer !== undefined) return;
    const before = inView();
    timer = setTimeout(() => {
      timer = undefined;
      const now = inView();
      if (before && now)
        onSeen({ first: later(before.first, now.first), last: earlier(before.last, now.last) });
      if (before?.last.id !== now?.last.id || before?.first.id !== now?.first.id) check();
    }, SEEN_AFTER_MS);
  }
  return { check, stop: () => clearTimeout(timer) };
}

const earlier = (a: Message, b: Message) => (compareTimestamps(a.timestamp, b.timestamp) < 0 ? a : b);
const later = (a: Message, b: Message) => (earlier(a, b) === a ? b : a);

/** Returns the messages of a timeline that a person can see now; null in a hidden tab and behind an open thread. */
export function messagesInView(box: HTMLElement | null, items: readonly Message[]): MessagesInView | null {
  if (!box || document.visibilityState !== "visible" || box.closest("[inert]")) return null;
  const view = box.getBoundingClientRect();
  const ids = [...box.querySelectorAll<HTMLElement>("[data-message]")]
    .filter((row) => isInView(row.getBoundingClientRect(), view))
    .map((row) => row.dataset.message);
  const first = items.find(({ id }) => id === ids[0]);
  const last = items.find(({ id }) => id === ids.at(-1));
  return first && last ? { first, last } : null;
}

function isInView(row: DOMRect, view: DOMRect): boolean {
  return row.bottom > view.top && (row.bottom <= view.bottom + 1 || row.top <= view.bottom - VISIBLE_MIN_PX);
}
