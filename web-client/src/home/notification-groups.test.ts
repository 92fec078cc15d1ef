import { expect, test } from "vitest";
import { actorsOf, emojisOf, groupNotifications, hasUnread } from "./notification-groups";
import type { Notification } from "./operations";

const DAY_S = 86_400;
let time_s = 1_700_000_000;

function notification(
  kind: Notification["kind"],
  actorId: string,
  more: Partial<Notification> = {},
): Notification {
  time_s -= 60;
  const timestamp = `${time_s}.000001`;
  return {
    id: `ann-${timestamp}`,
    timestamp,
    kind,
    subjectId: null,
    emoji: null,
    actor: { id: actorId, handle: actorId, name: actorId, avatarUrl: null },
    message: null,
    post: null,
    warning: null,
    publication: null,
    account: null,
    reportOutcome: null,
    community: null,
    stampPack: null,
    conversation: null,
    ...more,
  };
}

function message(id: string, topicId = "t"): Partial<Notification> {
  return {
    message: { id, topicId, timestamp: "1.000001", text: "", editedAt: null, deletedAt: null, stamp: null },
  };
}

/** A post of the viewer, to which others reacted or which they reposted. */
function post(id: string): Partial<Notification> {
  return { post: { id, text: "", editedAt: null }, subjectId: id };
}

/** A reply to the post of the viewer, or a quote of it. */
function answer(id: string, subjectId: string): Partial<Notification> {
  return { post: { id, text: "", editedAt: null }, subjectId };
}

const keyed = (notifications: readonly Notification[]) =>
  groupNotifications(notifications).map((group) => actorsOf(group).map(({ id }) => id));

test("reactions are grouped by message and post, in the place of the newest", () => {
  const notifications = [
    notification("REACTION", "bob", message("m1")),
    notification("REACTION", "cat", message("m2")),
    notification("MENTION", "dan", message("m1")),
    notification("REACTION", "dan", message("m1")),
    notification("REACTION", "eve", post("m1x")),
    notification("REPOST", "eve", post("m1x")),
    notification("REPOST", "fay", post("m1x")),
  ];
  expect(keyed(notifications)).toEqual([["bob", "dan"], ["cat"], ["dan"], ["eve"], ["eve", "fay"]]);
});

test("direct messages are grouped by conversation, until the older notification is removed", () => {
  const conversation = (id: string): Partial<Notification> => ({
    conversation: { id, name: "", isGroup: false, topic: { id } },
  });
  const notifications = [
    notification("DIRECT_MESSAGE", "bob", conversation("c1")),
    notification("DIRECT_MESSAGE", "bob", conversation("c2")),
    notification("CONVERSATION_REQUEST", "cat", conversation("c3")),
    notification("DIRECT_MESSAGE", "dan", conversation("c1")),
  ];
  expect(keyed(notifications)).toEqual([["bob", "dan"], ["bob"], ["cat"]]);
});

test("people and emojis of a group are listed once, the newest first", () => {
  const [group] = groupNotifications([
    notification("REACTION", "bob", { ...message("m"), emoji: "🐟" }),
    notification("REACTION", "cat", { ...message("m"), emoji: "🎉" }),
    notification("REACTION", "bob", { ...message("m"), emoji: "🎉" }),
    notification("REACTION", "dan", message("m")),
  ]);
  expect(group && actorsOf(group).map(({ id }) => id)).toEqual(["bob", "cat", "dan"]);
  expect(group && emojisOf(group)).toEqual(["🐟", "🎉"]);
});

test("replies and quotes are grouped by the post, until the newest of them is deleted", () => {
  const notifications = [
    notification("REPLY", "bob", answer("a1", "p1")),
    notification("QUOTE", "cat", answer("q1", "p1")),
    notification("REPLY", "cat", answer("a2", "p2")),
    notification("REPLY", "dan", answer("a3", "p1")),
    notification("REPLY", "bob", answer("a4", "p1")),
    notification("QUOTE", "bob", answer("q2", "p1")),
    notification("REPLY", "eve", { ...answer("a5", ""), subjectId: null }),
  ];
  const [replies] = groupNotifications(notifications);
  expect(replies?.notifications.map((each) => each.post?.id)).toEqual(["a1", "a3", "a4"]);
  expect(keyed(notifications)).toEqual([["bob", "dan"], ["cat", "bob"], ["cat"], ["eve"]]);
  expect(keyed(notifications.slice(1))).toEqual([["cat", "bob"], ["cat"], ["dan", "bob"], ["eve"]]);
});

test("replies in a thread are grouped by the thread", () => {
  const notifications = [
    notification("THREAD_REPLY", "bob", message("m1", "thread")),
    notification("THREAD_REPLY", "cat", message("m2", "thread")),
    notification("THREAD_REPLY", "dan", message("m3", "other")),
  ];
  expect(keyed(notifications)).toEqual([["bob", "cat"], ["dan"]]);
});

test("followers are grouped by the day", () => {
  const notifications = [notification("FOLLOW", "bob"), notification("FOLLOW", "cat")];
  time_s -= DAY_S;
  expect(keyed([...notifications, notification("FOLLOW", "dan")])).toEqual([["bob", "cat"], ["dan"]]);
});

test("notifications about content that the viewer may not see any more are not grouped", () => {
  expect(keyed([notification("REACTION", "bob"), notification("REACTION", "cat")])).toEqual([
    ["bob"],
    ["cat"],
  ]);
});

test("a new notification joins its group, which keeps its key", () => {
  const older = [notification("FOLLOW", "x"), notification("REACTION", "bob", message("m"))];
  const [, before] = groupNotifications(older);
  time_s += 3_600;
  const [after, ...others] = groupNotifications([notification("REACTION", "cat", message("m")), ...older]);
  expect(after?.key).toBe(before?.key);
  expect(others.map(({ newest }) => newest.kind)).toEqual(["FOLLOW"]);
});

test("a group is unread if one of its notifications is after the read mark", () => {
  const [group] = groupNotifications([
    notification("REACTION", "bob", message("m")),
    notification("REACTION", "cat", message("m")),
  ]);
  if (!group) throw new Error("There is no group.");
  const [newer, older] = group.notifications;
  expect(hasUnread(group, null)).toBe(true);
  expect(hasUnread(group, older?.timestamp ?? "")).toBe(true);
  expect(hasUnread(group, newer?.timestamp ?? "")).toBe(false);
});
