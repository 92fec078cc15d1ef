/** Decides how a message is shown after the previous message: new day, first unread message, or continuation. */
import { dateOf, isSameDay } from "../../i18n/times";
import { compareTimestamps, type TimelineWindow } from "../../timeline/window";
import type { Message } from "../operations";

export interface MessageRowContext {
  isNewDay: boolean;
  /** The first message by another author after the read mark. */
  isFirstUnread: boolean;
  /** Whether the message continues the same author's previous message, and is shown without name and picture. */
  isContinuation: boolean;
}

const CONTINUES_WITHIN_MS = 5 * 60_000;

export function rowContext(
  message: Message,
  previous: Message | undefined,
  firstUnreadId: string | null,
): MessageRowContext {
  const isNewDay =
    previous === undefined || !isSameDay(dateOf(previous.timestamp), dateOf(message.timestamp));
  const isFirstUnread = message.id === firstUnreadId;
  const isContinuation =
    !isNewDay &&
    !isFirstUnread &&
    previous.author.id === message.author.id &&
    previous.deletedAt === null &&
    !message.threadReply &&
    dateOf(message.timestamp).getTime() - dateOf(previous.timestamp).getTime() < CONTINUES_WITHIN_MS;
  return { isNewDay, isFirstUnread, isContinuation };
}

/** Returns the messages that count as unread after a timestamp: those by other people that were not deleted. */
export function unreadAfter(items: readonly Message[], timestamp: string, viewerId: string): Message[] {
  return items.filter(
    (item) =>
      compareTimestamps(item.timestamp, timestamp) > 0 &&
      item.author.id !== viewerId &&
      item.deletedAt === null,
  );
}

/** Returns the id of the first unread message after a timestamp; null if there is none, or if it may not be loaded. */
export function firstUnreadId(
  items: readonly Message[],
  hasOlder: boolean,
  newAfter: string | null,
  viewerId: string,
): string | null {
  const [oldest] = items;
  if (newAfter === null || oldest === undefined) return null;
  if (hasOlder && compareTimestamps(oldest.timestamp, newAfter) > 0) return null;
  return unreadAfter(items, newAfter, viewerId)[0]?.id ?? null;
}

/** Returns whether there may be an unread message after a timestamp and before a message of the window. */
export function hasUnreadBefore(
  message: Message,
  { items, hasOlder }: Pick<TimelineWindow<Message>, "items" | "hasOlder">,
  timestamp: string,
  viewerId: string,
): boolean {
  const [oldest] = items;
  if (hasOlder && oldest && compareTimestamps(oldest.timestamp, timestamp) > 0) return true;
  const [firstUnread] = unreadAfter(items, timestamp, viewerId);
  return firstUnread !== undefined && compareTimestamps(firstUnread.timestamp, message.timestamp) < 0;
}
