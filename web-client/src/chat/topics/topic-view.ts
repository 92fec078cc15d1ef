/** The state of an open topic: its window of messages, updated by events, and the actions on its messages. */
import type { CombinedError } from "urql";
import { type Api, request, subscribe } from "../../api/api";
import { createFeed, type TimelineFeed } from "../../timeline/feed";
import { compareTimestamps, withChangedItem } from "../../timeline/window";
import { notifyFailure } from "../../ui/toasts";
import { createValue, type ObservableValue } from "../../ui/value";
import type { Outbox } from "../composer/outbox";
import { toggleReaction } from "../messages/reactions";
import {
  AddReaction,
  DeleteMessage,
  EditMessage,
  type Message,
  MessagesAfter,
  MessagesAround,
  MessagesBefore,
  RemoveReaction,
  TopicEvents,
} from "../operations";
import { createTopicPins, type TopicPins } from "./pins";
import { createReadState, type ReadState, type StoredReadState } from "./read-state";

export interface TopicView {
  feed: TimelineFeed<Message>;
  pins: TopicPins;
  read: ReadState;
  /** The error that ended the subscription; null while the subscription is running. */
  subscriptionError: ObservableValue<CombinedError | null>;
  react(message: Message, emoji: string): void;
  edit(id: string, text: string): Promise<void>;
  remove(id: string): void;
  stop(): void;
}

interface TopicViewOptions {
  viewerId: string;
  /** Id of the parent message of a thread; null for other topics. */
  parentId: string | null;
  /** Timestamp of the message at which the topic opens; null for the first unread one, or else the newest one. */
  timestamp: string | null;
  stored: StoredReadState;
  /** Whether messages are loaded with the roles of their authors, which only moderators need. */
  withRoles: boolean;
  onTopicChanged: () => void;
}

export function openTopicView(
  api: Api,
  outbox: Outbox,
  topicId: string,
  { viewerId, parentId, timestamp, stored, withRoles, onTopicChanged }: TopicViewOptions,
): TopicView {
  const feed = createFeed<Message>(timelineSource(api, topicId, withRoles));
  const pins = createTopicPins(api, topicId);
  const read = createReadState(api, topicId, stored);
  const subscriptionError = createValue<CombinedError | null>(null);
  let hasStarted = false;

  /** Returns whether the viewer has seen the newest message. */
  function hasSeenAll(): boolean {
    const { items, hasNewer } = feed.state.get().window;
    const newest = items.at(-1)?.timestamp;
    return !hasNewer && newest !== undefined && compareTimestamps(newest, read.seenUpTo.get()) <= 0;
  }

  // The first page is read after StreamReady, so no message is missed between the page and the events.
  const unsubscribe = subscribe(
    api.direct,
    TopicEvents,
    { topicId, withRoles },
    ({ topicEvents: event }) => {
      if (event.__typename === "StreamReady") {
        // After a disconnect, the line stands above what was missed.
        if (hasStarted && (!event.resumed || hasSeenAll())) read.moveLine();
        if (!event.resumed) {
          void feed.open(hasStarted ? read.seenUpTo.get() : (timestamp ?? read.newAfter.get()));
          pins.load();
        }
        hasStarted = true;
      } else if (event.__typename === "MessagePosted") {
        if (event.message.author.id === viewerId) outbox.markArrived(event.message, parentId);
        feed.put(event.message);
      } else if (event.__typename === "MessagePinned") pins.put(event.message);
      else if (event.__typename === "MessageUnpinned") pins.remove(event.message.id);
      else if (event.__typename === "TopicChanged") onTopicChanged();
      else if ("message" in event) replace(event.message);
    },
    (error) => subscriptionError.set(error),
  );
  const stopListening = outbox.onSent((message) => message.topicId === topicId && feed.put(message));

  /** Shows the changed message. Events come without the role of its author, so the known role stays. */
  function replace(message: Message): void {
    feed.apply((window) => withChangedItem(window, message.id, (current) => ({ ...current, ...message })));
    pins.change(message);
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

  return {
    feed,
    pins,
    read,
    subscriptionError,
    react,
    edit: async (id, text) => replace((await request(api.direct, EditMessage, { id, text })).editMessage),
    remove: (id) =>
      void request(api.direct, DeleteMessage, { id }).then(
        (data) => replace(data.deleteMessage),
        notifyFailure,
      ),
    stop() {
      unsubscribe();
      stopListening();
      read.stop();
    },
  };
}

function timelineSource(api: Api, topicId: string, withRoles: boolean) {
  const loadBefore = async (latest: string, inclusive: boolean) =>
    (await request(api.direct, MessagesBefore, { topicId, latest, inclusive, withRoles })).messages;
  return {
    newest: () => loadBefore("now", true),
    older: (timestamp: string) => loadBefore(timestamp, false),
    newer: async (timestamp: string) =>
      (await request(api.direct, MessagesAfter, { topicId, oldest: timestamp, withRoles })).messages,
    around: async (timestamp: string) =>
      (await request(api.direct, MessagesAround, { topicId, timestamp, withRoles })).messagesAround,
  };
}
