import { expect, test } from "vitest";
import type { Message } from "../operations";
import { toggleReaction } from "./reactions";
import { firstUnreadId, hasUnreadBefore, rowContext } from "./row-context";

const message = (id: string, author: string, seconds: number) =>
  ({
    id,
    author: { id: author },
    timestamp: `${1_700_000_000 + seconds}.000000`,
    deletedAt: null,
    reactions: [],
  }) as unknown as Message;

test("a message within five minutes of the author's previous message is a continuation", () => {
  const first = message("a", "ann", 0);
  expect(rowContext(message("b", "ann", 60), first, null).isContinuation).toBe(true);
  expect(rowContext(message("b", "ben", 60), first, null).isContinuation).toBe(false);
  expect(rowContext(message("b", "ann", 600), first, null).isContinuation).toBe(false);
  expect(rowContext(message("b", "ann", 60), first, "b")).toMatchObject({
    isContinuation: false,
    isFirstUnread: true,
  });
  expect(rowContext(message("b", "ann", 86_400), first, null).isNewDay).toBe(true);
});

test("the divider is above the first message by another author after the read mark", () => {
  const items = [message("a", "ben", 0), message("b", "ann", 1), message("c", "ben", 2)];
  expect(firstUnreadId(items, false, "1700000000.000000", "ann")).toBe("c");
  expect(firstUnreadId(items, false, "1700000002.000000", "ann")).toBeNull();
  expect(firstUnreadId(items, false, "0.000000", "ann")).toBe("a");
  expect(firstUnreadId(items, true, "0.000000", "ann")).toBeNull();
  expect(firstUnreadId(items, true, "1700000000.000000", "ann")).toBe("c");
  expect(firstUnreadId(items, false, null, "ann")).toBeNull();
});

test("unread messages may be before a message, also those that are not loaded", () => {
  const items = [
    message("a", "ben", 0),
    message("b", "ann", 1),
    message("c", "ben", 2),
    message("d", "ben", 3),
  ];
  const isBefore = (index: number, readUpTo: string, hasOlder = false) =>
    hasUnreadBefore(items[index] as Message, { items, hasOlder }, readUpTo, "ann");
  expect(isBefore(3, "1700000000.000000")).toBe(true);
  expect(isBefore(2, "1700000000.000000")).toBe(false);
  expect(isBefore(0, "1600000000.000000")).toBe(false);
  expect(isBefore(0, "1600000000.000000", true)).toBe(true);
});

test("a reaction is added and removed before the server answers", () => {
  const once = toggleReaction(message("a", "ann", 0), "🔥");
  expect(once.reactions).toEqual([{ emoji: "🔥", count: 1, reacted: true }]);
  expect(toggleReaction(once, "🔥").reactions).toEqual([]);
});
