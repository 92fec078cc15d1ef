/** The state of an open topic: its window of messages, updated by events, and the actions on its messages. */
import type { CombinedError } from "urql";
import { type Api, request, subscribe } from "../api/api";
import { createFeed, type Feed } from "../timeline/feed";
import { compare, withChangedItem } from "../timeline/window";
import { notifyFailure } from "../ui/toasts";
import { createValue, type Value } from "../ui/value";
import {
  AddReaction,
  DeleteMessage,
  EditMessage,
  MarkRead,
  type Message,
  MessagesAround,
  NewerMessages,
  NewestMessages,
  RemoveReaction,
  TopicEvents,
} from "./operations";
import type { Outbox } from "./outbox";
import { toggleReaction } from "./reactions";

export interface TopicView {
  feed: Feed<Message>;
  /** Why the subscription ended; null while it is running. */
  ended: Value<CombinedError | null>;
  react(message: Message, emoji: string): void;
  edit(id: string, text: string): Promise<void>;
  remove(id: string): void;
  read(timestamp: string): void;
  stop(): void;
}

const READ_PAUSE_MS = 400;

export function openTopicView(
  api: Api,
  outbox: Outbox,
  topicId: string,
  viewerId: string,
  at: string | null,
): TopicView {
  const feed = createFeed<Message>(timelineSource(api, topicId));
  const ended = createValue<CombinedError | null>(null);
  let place = at;

  // The page is read after StreamReady, so no message is missed in between.
  const stop = subscribe(
    api.direct,
    TopicEvents,
    { topicId },
    ({ topicEvents: event }) => {
      if (event.__typename === "StreamReady") {
        if (!event.resumed) void feed.open(place);
        place = null;
      } else if (event.__typename === "MessagePosted") {
        if (event.message.author.id === viewerId) outbox.markArrived(event.message);
        feed.put(event.message);
      } else if ("message" in event) put(event.message);
    },
    (error) => ended.set(error),
  );
  const stopSent = outbox.onSent((message) => message.topicId === topicId && feed.put(message));

  function put(message: Message): void {
    feed.apply((window) => withChangedItem(window, message.id, () => message));
  }

  function react(message: Message, emoji: string): void {
    const hasReacted = message.reactions.find((reaction) => reaction.emoji === emoji)?.reacted;
    put(toggleReaction(message, emoji));
    const variables = { id: message.id, emoji };
    const saved = hasReacted
      ? request(api.direct, RemoveReaction, variables).then((data) => put(data.removeReaction))
      : request(api.direct, AddReaction, variables).then((data) => put(data.addReaction));
    saved.catch((error) => {
      feed.apply((window) =>
        withChangedItem(window, message.id, (now) => ({ ...now, reactions: message.reactions })),
      );
      notifyFailure(error);
    });
  }

  const read = createReadMark(api, topicId);
  return {
    feed,
    ended,
    react,
    read: read.mark,
    edit: async (id, text) => put((await request(api.direct, EditMessage, { id, text })).editMessage),
    remove: (id) =>
      void request(api.direct, DeleteMessage, { id }).then((data) => put(data.deleteMessage), notifyFailure),
    stop() {
      stop();
      stopSent();
      read.stop();
    },
  };
}

function timelineSource(api: Api, topicId: string) {
  const before = async (latest: string, inclusive: boolean) =>
    (await request(api.direct, NewestMessages, { topicId, latest, inclusive })).messages;
  return {
    newest: () => before("now", true),
    older: (than: string) => before(than, false),
    newer: async (than: string) => (await request(api.direct, NewerMessages, { topicId, oldest: than })).messages,
    around: async (timestamp: string) =>
      (await request(api.direct, MessagesAround, { topicId, timestamp })).messagesAround,
  };
}

/** Moves the read mark forward, throttled. */
function createReadMark(api: Api, topicId: string) {
  let sent: string | null = null;
  let requested: string | null = null;
  let timer: ReturnType<typeof setTimeout> | undefined;
  function send(): void {
    timer = undefined;
    if (requested === null || (sent !== null && compare(requested, sent) <= 0)) return;
    sent = requested;
    // A read mark that is not saved is corrected by the next one.
    request(api.cached, MarkRead, { topicId, timestamp: requested }).catch(() => {});
  }
  return {
    mark(timestamp: string) {
      if (requested === null || compare(timestamp, requested) > 0) requested = timestamp;
      timer ??= setTimeout(send, READ_PAUSE_MS);
    },
    stop() {
      clearTimeout(timer);
      send();
    },
  };
}
