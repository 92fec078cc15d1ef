/** Decides how a message is shown after the previous message: new day, first unread message, or continuation. */
import { dateOf, isSameDay } from "../i18n/times";
import { compareTimestamps } from "../timeline/window";
import type { Message } from "./operations";

export interface RowContext {
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
): RowContext {
  const isNewDay =
    previous === undefined || !isSameDay(dateOf(previous.timestamp), dateOf(message.timestamp));
  const isFirstUnread = message.id === firstUnreadId;
  const isContinuation =
    !isNewDay &&
    !isFirstUnread &&
    previous.author.id === message.author.id &&
    previous.deletedAt === null &&
    dateOf(message.timestamp).getTime() - dateOf(previous.timestamp).getTime() < CONTINUES_WITHIN_MS;
  return { isNewDay, isFirstUnread, isContinuation };
}

/** Returns the id of the first unread message; null if there is none or it is before the loaded items. */
export function firstUnreadId(
  items: readonly Message[],
  hasOlder: boolean,
  readUpTo: string | null,
  viewerId: string,
): string | null {
  const firstAfterMark = items.findIndex(
    ({ timestamp }) => readUpTo === null || compareTimestamps(timestamp, readUpTo) > 0,
  );
  if (firstAfterMark < 0 || (firstAfterMark === 0 && hasOlder)) return null;
  const unread = items
    .slice(firstAfterMark)
    .find(({ author, deletedAt }) => author.id !== viewerId && deletedAt === null);
  return unread?.id ?? null;
}
