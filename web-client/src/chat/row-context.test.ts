import { expect, test } from "vitest";
import type { Message } from "./operations";
import { toggleReaction } from "./reactions";
import { firstUnreadId, rowContext } from "./row-context";

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
  expect(firstUnreadId(items, false, null, "ann")).toBe("a");
  expect(firstUnreadId(items, true, null, "ann")).toBeNull();
});

test("a reaction is added and removed before the server answers", () => {
  const once = toggleReaction(message("a", "ann", 0), "🔥");
  expect(once.reactions).toEqual([{ emoji: "🔥", count: 1, reacted: true }]);
  expect(toggleReaction(once, "🔥").reactions).toEqual([]);
});
