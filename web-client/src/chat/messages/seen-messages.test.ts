import { afterEach, expect, test, vi } from "vitest";
import type { Message } from "../operations";
import { createSeenMessages, type MessagesInView, SEEN_AFTER_MS } from "./seen-messages";

const message = (n: number) => ({ id: `m${n}`, timestamp: `1.${String(n).padStart(6, "0")}` }) as Message;
const view = (first: number, last: number): MessagesInView => ({
  first: message(first),
  last: message(last),
});

/** Returns the tracker of a view that the test changes, and the numbers of the last messages that were seen. */
function trackedView(start: MessagesInView | null) {
  vi.useFakeTimers();
  let current = start;
  const seen: string[] = [];
  const tracker = createSeenMessages(
    () => current,
    ({ last }) => seen.push(last.id),
  );
  const show = (shown: MessagesInView | null) => {
    current = shown;
    tracker.check();
  };
  return { tracker, seen, show };
}

afterEach(() => vi.useRealTimers());

test("a message counts as seen after it was in view for a moment", () => {
  const { tracker, seen } = trackedView(view(1, 5));
  tracker.check();
  vi.advanceTimersByTime(SEEN_AFTER_MS - 1);
  expect(seen).toEqual([]);
  vi.advanceTimersByTime(1);
  expect(seen).toEqual(["m5"]);
});

test("a message that is in view only in passing does not count", () => {
  const { seen, show } = trackedView(null);
  show(view(90, 94));
  show(view(1, 5));
  vi.advanceTimersByTime(SEEN_AFTER_MS);
  expect(seen).toEqual(["m5"]);
});

test("messages that came into view meanwhile count a moment later", () => {
  const { seen, show } = trackedView(view(1, 5));
  show(view(1, 5));
  vi.advanceTimersByTime(SEEN_AFTER_MS - 1);
  show(view(4, 9));
  vi.advanceTimersByTime(2 * SEEN_AFTER_MS);
  expect(seen).toEqual(["m5", "m9"]);
});

test("nothing counts in a hidden tab, and after the end", () => {
  const { tracker, seen, show } = trackedView(null);
  show(null);
  vi.advanceTimersByTime(SEEN_AFTER_MS);
  show(view(1, 5));
  tracker.stop();
  vi.advanceTimersByTime(2 * SEEN_AFTER_MS);
  expect(seen).toEqual([]);
});
