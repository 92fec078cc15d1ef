/** What a desktop notification shows. The server's pushes have the same places, keys and tags (docs/offline-notifications.md). */
import type { Conversation } from "../../chat/conversations/operations";
import { isAboutAccount } from "../../home/notification-groups";
import type { Notification } from "../../home/operations";
import type { Translate } from "../../ui/preferences";
import { plainText } from "../../ui/text/formatting";
import type { NotificationWays } from "../operations";

export type NotificationCategory = NotificationWays["category"];

export interface Alert {
  title: string;
  body: string;
  /** Fragment of the address to open. */
  place: string;
  /** The place without the position. A notification replaces another one with its tag. */
  tag: string;
  /** Identifies what the alert is about. */
  key: string;
  category: NotificationCategory;
  /** The message whose topic decides whether the viewer wants the alert; null if no topic does. */
  message: { topicId: string; timestamp: string } | null;
  /** Whether the message is new. If so, the alert is of no use after the viewer has read the message. */
  isNewMessage: boolean;
}

const EXCERPT_CHARS = 160;
/** An event is about a new message only if it came soon after the message. Otherwise something else has changed. */
const NEW_WITHIN_MS = 60_000;
const NEW_MESSAGES: readonly Notification["kind"][] = ["MENTION", "THREAD_REPLY"];

type ListedKind = "CONVERSATION_REQUEST" | "DIRECT_MESSAGE";
type AlertedNotification = Notification & { kind: Exclude<Notification["kind"], ListedKind> };

const CATEGORIES: Record<AlertedNotification["kind"], NotificationCategory> = {
  MENTION: "MENTION",
  REPLY: "REPLY",
  THREAD_REPLY: "REPLY",
  QUOTE: "REPLY",
  REACTION: "REACTION",
  REPOST: "REACTION",
  FOLLOW: "FOLLOW",
  PUBLICATION_FAILED: "PUBLICATION",
  PUBLICATION_UNKNOWN: "PUBLICATION",
  PUBLICATION_NEEDS_ATTENTION: "PUBLICATION",
  PUBLICATION_LATE: "PUBLICATION",
  ACCOUNT_CREDENTIALS_ENDING: "PUBLICATION",
  ACCOUNT_CREDENTIALS_ENDED: "PUBLICATION",
  ACCOUNT_NEEDS_ATTENTION: "PUBLICATION",
  REPORT_DECIDED: "MODERATION",
  WARNING: "MODERATION",
  ADDED_TO_COMMUNITY: "MEMBERSHIP",
  STAMP_PACK_RECEIVED: "STAMP_PACK",
};

/** Returns the alert for a notification; null if only the list shows it. Messages of conversations have alerts of their own. */
export function notificationAlert(notification: Notification, t: Translate): Alert | null {
  if (!hasAlert(notification)) return null;
  const { kind, actor, message, post, timestamp } = notification;
  const isNewMessage = message !== null && NEW_MESSAGES.includes(kind);
  const tag = tagOf(notification);
  const place = message ? `${tag}/${message.timestamp}` : tag;
  const category = CATEGORIES[kind];
  return {
    title: t(titleKey(notification), {
      name: actor?.name ?? "",
      account: notification.account?.name ?? t("notification.noAccount"),
      community: notification.community?.name ?? t("notification.noCommunity"),
    }),
    body: excerpt(message?.text ?? post?.text ?? ""),
    place,
    tag,
    key: isNewMessage ? place : `${place}?${timestamp}`,
    category,
    message: category === "MODERATION" ? null : message,
    isNewMessage,
  };
}

function hasAlert(notification: Notification): notification is AlertedNotification {
  return notification.kind !== "CONVERSATION_REQUEST" && notification.kind !== "DIRECT_MESSAGE";
}

function titleKey({ kind, post, actor }: AlertedNotification) {
  if (kind === "REACTION" && post) return "notification.postReaction";
  if (kind === "ADDED_TO_COMMUNITY") return actor ? "notification.added" : "notification.joined";
  return `notification.${kind}` as const;
}

function tagOf({ kind, message, post, community, actor }: Notification): string {
  if (message) return `#/topic/${encodeURIComponent(message.topicId)}`;
  if (post) return `#/post/${encodeURIComponent(post.id)}`;
  if (community) return `#/community/${encodeURIComponent(community.id)}`;
  if (kind === "FOLLOW" && actor) return `#/person/${encodeURIComponent(actor.id)}`;
  if (isAboutAccount(kind)) return "#/publishing";
  return "#/notifications";
}

/**
 * Returns the alert for an event of a conversation; null unless the event is about a new message that the viewer has
 * not read, in a conversation that the viewer has joined and not muted.
 */
export function conversationAlert(
  { state, topic }: Conversation,
  at: string,
  viewerId: string,
  t: Translate,
): Alert | null {
  const { id, lastMessage, unreadCount, muted } = topic;
  if (state !== "JOINED" || muted || unreadCount === 0 || !lastMessage) return null;
  const { author, text, timestamp } = lastMessage;
  const isNew = Date.parse(at) - Number(timestamp) * 1000 < NEW_WITHIN_MS;
  if (author.id === viewerId || !isNew) return null;
  const tag = `#/topic/${encodeURIComponent(id)}`;
  const place = `${tag}/${timestamp}`;
  return {
    title: t("desktop.directMessage", { name: author.name }),
    body: excerpt(text),
    place,
    tag,
    key: place,
    category: "DIRECT_MESSAGE",
    message: { topicId: id, timestamp },
    isNewMessage: true,
  };
}

function excerpt(text: string): string {
  const line = plainText(text).replaceAll(/\s+/g, " ").trim();
  return line.length <= EXCERPT_CHARS ? line : `${line.slice(0, EXCERPT_CHARS - 1)}…`;
}
