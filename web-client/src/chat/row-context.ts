/** Compares a message with the one before: a new day, the first unread message, or a continuation. */
import { dateOf, isSameDay } from "../i18n/times";
import { compare } from "../timeline/window";
import type { Message } from "./operations";

export interface RowContext {
  isNewDay: boolean;
  /** The first message by another author after the read mark. */
  isFirstUnread: boolean;
  isContinuation: boolean;
}

const CONTINUES_WITHIN_MS = 5 * 60_000;

export function rowContext(
  message: Message,
  before: Message | undefined,
  firstUnreadId: string | null,
): RowContext {
  const isNewDay = before === undefined || !isSameDay(dateOf(before.timestamp), dateOf(message.timestamp));
  const isFirstUnread = message.id === firstUnreadId;
  const isContinuation =
    !isNewDay &&
    !isFirstUnread &&
    before.author.id === message.author.id &&
    before.deletedAt === null &&
    dateOf(message.timestamp).getTime() - dateOf(before.timestamp).getTime() < CONTINUES_WITHIN_MS;
  return { isNewDay, isFirstUnread, isContinuation };
}

/** Returns the id of the first unread message; null when nothing is unread or the message is not in the window. */
export function firstUnreadId(
  items: readonly Message[],
  hasOlder: boolean,
  readUpTo: string | null,
  viewerId: string,
): string | null {
  const start = items.findIndex(({ timestamp }) => readUpTo === null || compare(timestamp, readUpTo) > 0);
  if (start < 0 || (start === 0 && hasOlder)) return null;
  const unread = items
    .slice(start)
    .find(({ author, deletedAt }) => author.id !== viewerId && deletedAt === null);
  return unread?.id ?? null;
}
