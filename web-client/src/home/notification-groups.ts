/** Notifications of the same kind about the same thing, which are shown as one row. No function modifies its arguments. */
import { dateOf } from "../i18n/times";
import { compareTimestamps } from "../timeline/window";
import type { Notification } from "./operations";

export interface NotificationGroup {
  /** The same while the group exists, also when notifications join it. */
  key: string;
  newest: Notification;
  /** Newest first, `newest` included. */
  notifications: readonly Notification[];
}

export type Actor = NonNullable<Notification["actor"]>;

/**
 * Groups notifications, which are in descending order: reactions, reposts, replies and quotes by the message or post
 * that they are about, replies in a thread by the thread, direct messages by the conversation, and new followers by the
 * day. A group takes the place of its newest notification.
 */
export function groupNotifications(notifications: readonly Notification[]): NotificationGroup[] {
  const groups = new Map<string, Notification[]>();
  for (const notification of notifications) {
    const key = groupKey(notification);
    const group = groups.get(key);
    if (group) group.push(notification);
    else groups.set(key, [notification]);
  }
  return [...groups].flatMap(([key, members]) =>
    members[0] ? [{ key, newest: members[0], notifications: members }] : [],
  );
}

function groupKey({ id, kind, subjectId, message, timestamp, actor, conversation }: Notification): string {
  if (subjectId) return `${kind} ${subjectId}`;
  if (kind === "REACTION" && message) return `${kind} ${message.id}`;
  if (kind === "THREAD_REPLY" && message) return `${kind} ${message.topicId}`;
  if (conversation) return `${kind} ${conversation.id}`;
  if (kind === "FOLLOW" && actor) return `${kind} ${dateOf(timestamp).toDateString()}`;
  return id;
}

/** Returns whether a notification is about a connected account. Also if the viewer may not see the account any more. */
export function isAboutAccount(kind: Notification["kind"]): boolean {
  return kind.startsWith("ACCOUNT_");
}

/** Returns the people of a group, each once, the one who acted last first. */
export function actorsOf({ notifications }: NotificationGroup): Actor[] {
  const actors = notifications.flatMap(({ actor }) => (actor ? [actor] : []));
  return [...new Map(actors.map((actor) => [actor.id, actor])).values()];
}

/** Returns the emojis of a group's reactions, each once, the newest first. */
export function emojisOf({ notifications }: NotificationGroup): string[] {
  return [...new Set(notifications.flatMap(({ emoji }) => (emoji ? [emoji] : [])))];
}

/** Returns whether the group has a notification after the read mark. Null: no notification was ever read. */
export function hasUnread({ newest }: NotificationGroup, readUpTo: string | null): boolean {
  return readUpTo === null || compareTimestamps(newest.timestamp, readUpTo) > 0;
}
