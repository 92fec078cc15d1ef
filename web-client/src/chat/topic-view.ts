/** The state of an open topic: its window of messages, updated by events, and the actions on its messages. */
import type { CombinedError } from "urql";
import { type Api, request, subscribe } from "../api/api";
import { createFeed, type Feed } from "../timeline/feed";
import { compareTimestamps, withChangedItem } from "../timeline/window";
import { notifyFailure } from "../ui/toasts";
import { createValue, type Value } from "../ui/value";
import {
  AddReaction,
  DeleteMessage,
  EditMessage,
  MarkRead,
  type Message,
  MessagesAfter,
  MessagesAround,
  MessagesBefore,
  RemoveReaction,
  TopicEvents,
} from "./operations";
import type { Outbox } from "./outbox";
import { toggleReaction } from "./reactions";

export interface TopicView {
  feed: Feed<Message>;
  /** The error that ended the subscription; null while the subscription is running. */
  subscriptionError: Value<CombinedError | null>;
  react(message: Message, emoji: string): void;
  edit(id: string, text: string): Promise<void>;
  remove(id: string): void;
  markRead(timestamp: string): void;
  stop(): void;
}

const MARK_READ_DELAY_MS = 400;

export function openTopicView(
  api: Api,
  outbox: Outbox,
  topicId: string,
  viewerId: string,
  at: string | null,
): TopicView {
  const feed = createFeed<Message>(timelineSource(api, topicId));
  const subscriptionError = createValue<CombinedError | null>(null);
  let startAt = at;

  // The first page is read after StreamReady, so no message is missed between the page and the events.
  const stop = subscribe(
    api.direct,
    TopicEvents,
    { topicId },
    ({ topicEvents: event }) => {
      if (event.__typename === "StreamReady") {
        if (!event.resumed) void feed.open(startAt);
        startAt = null;
      } else if (event.__typename === "MessagePosted") {
        if (event.message.author.id === viewerId) outbox.markArrived(event.message);
        feed.put(event.message);
      } else if ("message" in event) replace(event.message);
    },
    (error) => subscriptionError.set(error),
  );
  const stopSent = outbox.onSent((message) => message.topicId === topicId && feed.put(message));

  function replace(message: Message): void {
    feed.apply((window) => withChangedItem(window, message.id, () => message));
  }

  function react(message: Message, emoji: string): void {
    const hasReacted = message.reactions.find((reaction) => reaction.emoji === emoji)?.reacted;
    replace(toggleReaction(message, emoji));
    const variables = { id: message.id, emoji };
    const saving = hasReacted
      ? request(api.direct, RemoveReaction, variables).then((data) => replace(data.removeReaction))
      : request(api.direct, AddReaction, variables).then((data) => replace(data.addReaction));
    saving.catch((error) => {
      feed.apply((window) =>
        withChangedItem(window, message.id, (current) => ({ ...current, reactions: message.reactions })),
      );
      notifyFailure(error);
    });
  }

  const readMark = createReadMark(api, topicId);
  return {
    feed,
    subscriptionError,
    react,
    markRead: readMark.moveTo,
    edit: async (id, text) => replace((await request(api.direct, EditMessage, { id, text })).editMessage),
    remove: (id) =>
      void request(api.direct, DeleteMessage, { id }).then(
        (data) => replace(data.deleteMessage),
        notifyFailure,
      ),
    stop() {
      stop();
      stopSent();
      readMark.stop();
    },
  };
}

function timelineSource(api: Api, topicId: string) {
  const loadBefore = async (latest: string, inclusive: boolean) =>
    (await request(api.direct, MessagesBefore, { topicId, latest, inclusive })).messages;
  return {
    newest: () => loadBefore("now", true),
    older: (timestamp: string) => loadBefore(timestamp, false),
    newer: async (timestamp: string) =>
      (await request(api.direct, MessagesAfter, { topicId, oldest: timestamp })).messages,
    around: async (timestamp: string) =>
      (await request(api.direct, MessagesAround, { topicId, timestamp })).messagesAround,
  };
}

/** Returns functions that move the topic's read mark forward. At most one request is sent every 400 ms. */
function createReadMark(api: Api, topicId: string) {
  let sentTimestamp: string | null = null;
  let requestedTimestamp: string | null = null;
  let timer: ReturnType<typeof setTimeout> | undefined;
  function send(): void {
    timer = undefined;
    if (
      requestedTimestamp === null ||
      (sentTimestamp !== null && compareTimestamps(requestedTimestamp, sentTimestamp) <= 0)
    )
      return;
    sentTimestamp = requestedTimestamp;
    // After a failed request, the next request moves the read mark.
    request(api.cached, MarkRead, { topicId, timestamp: requestedTimestamp }).catch(() => {});
  }
  return {
    moveTo(timestamp: string) {
      if (requestedTimestamp === null || compareTimestamps(timestamp, requestedTimestamp) > 0)
        requestedTimestamp = timestamp;
      timer ??= setTimeout(send, MARK_READ_DELAY_MS);
    },
    stop() {
      clearTimeout(timer);
      send();
    },
  };
}
