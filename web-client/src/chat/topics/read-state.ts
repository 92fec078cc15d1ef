/** How far the viewer has read an open topic. The read mark on the server follows what the viewer has seen. */
import { type Api, request } from "../../api/api";
import { compareTimestamps } from "../../timeline/window";
import { createValue, type ObservableValue } from "../../ui/value";
import { MarkRead } from "../operations";

/** What the server knew when the topic was opened. */
export interface StoredReadState {
  /** The read mark; null if the viewer has read nothing. */
  readUpTo: string | null;
  unreadCount: number;
}

export interface ReadState {
  /** The timestamp up to which the viewer has seen the messages. */
  seenUpTo: ObservableValue<string>;
  /** The line "New" is above the first unread message after this timestamp; null for no line. */
  newAfter: ObservableValue<string | null>;
  /** Records that the viewer has seen everything up to a timestamp. */
  see(timestamp: string): void;
  /** Moves the line "New" to the first message that the viewer has not seen. */
  moveLine(): void;
  stop(): void;
}

/** Before all messages. */
const START = "0.000000";
/** At most one request is sent in this time. */
const MARK_READ_DELAY_MS = 400;

export function createReadState(
  api: Api,
  topicId: string,
  { readUpTo, unreadCount }: StoredReadState,
): ReadState {
  const seenUpTo = createValue(readUpTo ?? START);
  const newAfter = createValue(unreadCount > 0 ? seenUpTo.get() : null);
  let sent = seenUpTo.get();
  let timer: ReturnType<typeof setTimeout> | undefined;
  function send(): void {
    timer = undefined;
    const timestamp = seenUpTo.get();
    if (compareTimestamps(timestamp, sent) <= 0) return;
    sent = timestamp;
    // After a failed request, the next request moves the read mark.
    request(api.cached, MarkRead, { topicId, timestamp }).catch(() => {});
  }
  return {
    seenUpTo,
    newAfter,
    see(timestamp) {
      if (compareTimestamps(timestamp, seenUpTo.get()) <= 0) return;
      seenUpTo.set(timestamp);
      timer ??= setTimeout(send, MARK_READ_DELAY_MS);
    },
    moveLine: () => newAfter.set(seenUpTo.get()),
    stop() {
      clearTimeout(timer);
      send();
    },
  };
}
