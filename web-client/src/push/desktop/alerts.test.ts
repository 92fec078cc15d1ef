import { expect, test } from "vitest";
import type { Conversation } from "../../chat/conversations/operations";
import type { Notification } from "../../home/operations";
import { conversationAlert, notificationAlert } from "./alerts";

const UNCHANGED = { editedAt: null, deletedAt: null };
const t = (key: string, values: Record<string, string | number> = {}) => `${key} ${values.name}`;

function notification(parts: Partial<Notification>): Notification {
  return {
    id: "n",
    timestamp: "9.000000",
    kind: "MENTION",
    actor: { id: "ben", handle: "ben", name: "Ben", avatarUrl: null },
    message: null,
    post: null,
    warning: null,
    publication: null,
    reportOutcome: null,
    community: null,
    ...parts,
  } as Notification;
}

function conversation(unreadCount: number, parts: object = {}): Conversation {
  const lastMessage = {
    author: { id: "ben", name: "Ben" },
    text: "**Hi**\nthere",
    timestamp: "1700000000.000000",
  };
  const topic = { id: "c", unreadCount, muted: false, lastMessage, ...parts };
  return { id: "Conversation:c", state: "JOINED", topic } as unknown as Conversation;
}

test("a mention and the direct message itself have the same place, key and tag", () => {
  const message = {
    id: "m",
    topicId: "c",
    timestamp: "1700000000.000000",
    text: "Hi",
    stamp: null,
    ...UNCHANGED,
  };
  const mention = notificationAlert(notification({ message }), t);
  const direct = conversationAlert(conversation(1), "2023-11-14T22:13:21Z", "ann", t);
  const shared = {
    place: "#/topic/c/1700000000.000000",
    key: "#/topic/c/1700000000.000000",
    tag: "#/topic/c",
  };
  expect(mention).toMatchObject({ ...shared, title: "notification.MENTION Ben", category: "MENTION" });
  expect(direct).toMatchObject({ ...shared, title: "desktop.directMessage Ben", body: "Hi there" });
});

test("two reactions to the same message have two keys", () => {
  const message = { id: "m", topicId: "c", timestamp: "5.000000", text: "Hi", stamp: null, ...UNCHANGED };
  const keyOf = (timestamp: string) =>
    notificationAlert(notification({ kind: "REACTION", message, timestamp }), t)?.key;
  expect(keyOf("9.000000")).toBe("#/topic/c/5.000000?9.000000");
  expect(keyOf("9.000001")).not.toBe(keyOf("9.000000"));
});

test("an alert leads to the post, the person or the notifications", () => {
  const placeOf = (parts: Partial<Notification>) => notificationAlert(notification(parts), t)?.place;
  expect(placeOf({ kind: "REPLY", post: { id: "p", text: "", editedAt: null } })).toBe("#/post/p");
  expect(placeOf({ kind: "FOLLOW" })).toBe("#/person/ben");
  expect(placeOf({ kind: "PUBLICATION_FAILED", actor: null })).toBe("#/notifications");
  expect(placeOf({ kind: "ACCOUNT_CREDENTIALS_ENDING", actor: null })).toBe("#/publishing");
});

test("notifications of conversations have no alert: the messages have one, and requests have none", () => {
  for (const kind of ["DIRECT_MESSAGE", "CONVERSATION_REQUEST"] as const)
    expect(notificationAlert(notification({ kind }), t)).toBeNull();
});

test("a conversation alerts only about a new message of another person that is unread", () => {
  const alert = (of: Conversation, at = "2023-11-14T22:13:21Z", viewer = "ann") =>
    conversationAlert(of, at, viewer, t);
  expect(alert(conversation(0))).toBeNull();
  expect(alert(conversation(1, { muted: true }))).toBeNull();
  expect(alert(conversation(1, { lastMessage: null }))).toBeNull();
  expect(alert(conversation(1), "2023-11-14T22:13:21Z", "ben")).toBeNull();
  // The group was renamed an hour after its last message.
  expect(alert(conversation(1), "2023-11-14T23:13:21Z")).toBeNull();
  expect(alert({ ...conversation(1), state: "REQUESTED" })).toBeNull();
});
