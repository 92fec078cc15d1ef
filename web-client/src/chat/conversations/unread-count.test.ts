import { expect, test } from "vitest";
import { unreadConversationCount } from "./unread-count";

const conversation = (id: string, unreadCount: number, muted = false) => ({
  topic: { id, unreadCount, muted },
});

test("conversations with unread messages count once each, without muted ones and the open one", () => {
  const all = [conversation("a", 3), conversation("b", 0), conversation("c", 1), conversation("d", 5, true)];
  expect(unreadConversationCount(all, null)).toBe(2);
  expect(unreadConversationCount(all, "a")).toBe(1);
  expect(unreadConversationCount([], null)).toBe(0);
});
