/** Messages and posts as they are now, wherever a component shows an earlier state of them. */
import { useEffect, useRef } from "react";
import type { Client } from "urql";
import { useValue } from "../ui/value";
import { subscribe, useApi } from "./api";
import { graphql, untyped } from "./graphql";
import { type LoadedText, withChange } from "./text-changes";

/** How many topics a screen watches whose items are of many topics. A socket allows 50 operations at a time. */
const WATCHED_MAX = 20;
/** The same beside the chat's list of topics, which has subscriptions of its own. */
export const WATCHED_MAX_IN_CHAT = 3;

/** How many messages of a topic are read again when its subscription begins. */
const READ_AGAIN_MAX = 20;

const ChangedText = graphql(`
  fragment ChangedText on Message {
    id text editedAt deletedAt mentions { id handle name } stamp { id name imageUrl } attachments { name }
  }
`);
const ChangedTexts = graphql(
  `subscription ChangedTexts($topicId: ID!, $since: Cursor) {
    topicEvents(topicId: $topicId, since: $since) {
      __typename
      ... on Event { cursor }
      ... on StreamReady { resumed }
      ... on MessageEdited { message { ...ChangedText } }
      ... on MessageDeleted { message { ...ChangedText } }
    }
  }`,
  [ChangedText],
);

/** The queries of one message, of two, and so on. They are made in advance, so that the manifest holds them. */
const CURRENT_TEXTS = Array.from({ length: READ_AGAIN_MAX }, (_, index) => currentTexts(index + 1));

function currentTexts(count: number) {
  const numbers = Array.from({ length: count }, (_, index) => index);
  const parameters = numbers.map((n) => `$id${n}: ID!`).join(", ");
  const fields = numbers.map((n) => `currentText${n}: message(id: $id${n}) { ...ChangedText }`).join(" ");
  return untyped(`query CurrentTexts(${parameters}) { ${fields} }`, [ChangedText]);
}

type Current<Item extends LoadedText> = Item & { deletedAt?: string | null };

/** Returns the message or post with its last edit or deletion. */
export function useCurrent<Item extends LoadedText>(item: Item): Current<Item>;
export function useCurrent<Item extends LoadedText>(item: Item | null): Current<Item> | null;
export function useCurrent<Item extends LoadedText>(item: Item | null): Current<Item> | null {
  const changes = useValue(useApi().changes);
  return item && withChange(item, changes);
}

export interface WatchedMessage {
  id: string;
  topicId: string;
}

/** Receives the edits and deletions of messages whose topics are not open: of the first topics of the list. */
export function useWatchedMessages(messages: readonly WatchedMessage[], maxTopics = WATCHED_MAX): void {
  const { direct } = useApi();
  const shown = useRef(messages);
  useEffect(() => {
    shown.current = messages;
  });
  const topics = [...new Set(messages.map(({ topicId }) => topicId))];
  const watched = topics.slice(0, maxTopics).sort().join(" ");
  useEffect(() => {
    const watch = (topicId: string) =>
      subscribe(direct, ChangedTexts, { topicId }, ({ topicEvents: event }) => {
        // The messages may have changed after they were loaded and before the subscription began.
        if (event.__typename === "StreamReady" && !event.resumed)
          readAgain(
            direct,
            shown.current.filter((message) => message.topicId === topicId),
          );
      });
    const stops = watched.split(" ").filter(Boolean).map(watch);
    return () => {
      for (const stop of stops) stop();
    };
  }, [direct, watched]);
}

/** Reads the messages as they are now. The exchange of the client collects the changes of all answers and events. */
function readAgain(direct: Client, messages: readonly WatchedMessage[]): void {
  const ids = [...new Set(messages.map(({ id }) => id))].slice(0, READ_AGAIN_MAX);
  const variables = Object.fromEntries(ids.map((id, index) => [`id${index}`, id]));
  const query = CURRENT_TEXTS[ids.length - 1];
  if (query) void direct.query(query, variables, { requestPolicy: "network-only" }).toPromise();
}

const RemovedPosts = graphql(`
  subscription RemovedPosts($since: Cursor) {
    localEvents(since: $since) { __typename ... on Event { cursor } ... on PostRemoved { postId } }
  }
`);

/** Receives the deletions of posts, while a screen shows posts without a subscription of its own. */
export function useWatchedPosts(hasPosts: boolean): void {
  const { direct } = useApi();
  useEffect(() => (hasPosts ? subscribe(direct, RemovedPosts, {}, () => {}) : undefined), [direct, hasPosts]);
}
