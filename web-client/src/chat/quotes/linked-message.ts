/** Finds the message to which a pasted address of this page leads, so that the message field can quote it. */
import { type Api, request } from "../../api/api";
import { graphql } from "../../api/graphql";
import { parseRoute } from "../../app/router";
import type { QuotedMessage } from "../operations";

const ThreadOfMessage = graphql(
  `query ThreadOfMessage($id: ID!) { message(id: $id) { id thread { id topicId } } }`,
);
const MessageAt = graphql(`
  query MessageAt($topicId: ID!, $timestamp: Timestamp!) {
    messages(topicId: $topicId, latest: $timestamp, inclusive: true, limit: 1) {
      items { id topicId timestamp text editedAt deletedAt author { id name } stamp { id name } attachments { name } }
    }
  }
`);

export interface MessageAddress {
  /** The topic, or the parent message of the thread that holds the message. */
  place: { topicId: string } | { parentId: string };
  timestamp: string;
}

/** Returns the message that a text is the address of; null for other texts, and for addresses of other pages. */
export function messageAddress(text: string, page: string): MessageAddress | null {
  const [address = "", fragment] = text.split("#");
  if (fragment === undefined || address !== page.split("#")[0]) return null;
  const route = parseRoute(fragment);
  if (route.name !== "topic") return null;
  const { id: topicId, at, thread, reply } = route;
  if (thread) return reply ? { place: { parentId: thread }, timestamp: reply } : null;
  return at ? { place: { topicId }, timestamp: at } : null;
}

/** Returns the message at an address; null if the viewer may not read it, and if it was deleted. */
export async function findLinkedMessage(
  { direct }: Api,
  { place, timestamp }: MessageAddress,
): Promise<QuotedMessage | null> {
  try {
    const topicId =
      "topicId" in place
        ? place.topicId
        : (await request(direct, ThreadOfMessage, { id: place.parentId })).message?.thread?.topicId;
    if (!topicId) return null;
    const { items } = (await request(direct, MessageAt, { topicId, timestamp })).messages;
    return items.find((item) => item.timestamp === timestamp && !item.deletedAt) ?? null;
  } catch {
    return null;
  }
}
