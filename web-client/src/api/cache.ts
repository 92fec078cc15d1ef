/** The normalised cache of communities, topics and people. Timelines are not in it (see timeline/). */
import { type Cache, cacheExchange } from "@urql/exchange-graphcache";

const KEYLESS = [
  "LinkPreview",
  "Reaction",
  "TrendingTopic",
  "ReceivedReaction",
  "MessageTimeline",
  "HomeFeedTimeline",
  "PostTimeline",
  "NotificationTimeline",
  "ReactionTimeline",
  "TopicTimeline",
  "StreamReady",
  "TopicCreated",
  "TopicActivity",
];

/** Creates the cache of one signed-in user. */
export function createCache() {
  return cacheExchange({
    keys: Object.fromEntries(KEYLESS.map((name) => [name, () => null])),
    optimistic: {
      follow: ({ userId }) => ({ __typename: "User", id: userId, following: true }),
      unfollow: ({ userId }) => ({ __typename: "User", id: userId, following: false }),
    },
    updates: {
      Mutation: {
        createCommunity: (_result, _args, cache) => forget(cache, "communities"),
        joinCommunity: (_result, _args, cache) => forget(cache, "communities"),
        leaveCommunity: (_result, _args, cache) => forget(cache, "communities"),
        createTopic: ({ createTopic }, { input }, cache) =>
          list(cache, (input as { communityId: string }).communityId, createTopic as { id: string }),
        blockUser: (_result, _args, cache) => forget(cache, "blockedUsers"),
        unblockUser: (_result, _args, cache) => forget(cache, "blockedUsers"),
      },
      Subscription: {
        communityEvents: ({ communityEvents: event }, { communityId }, cache) =>
          list(cache, communityId as string, (event as { topic?: { id: string } }).topic),
      },
    },
  });
}

/**
 * Invalidates a query's field for all arguments; the cache alone would invalidate only the field without arguments.
 */
function forget(cache: Cache, field: string): void {
  for (const known of cache.inspectFields("Query"))
    if (known.fieldName === field) cache.invalidate("Query", field, known.arguments);
}

/** Adds a new or newly active topic to its community's list. */
function list(cache: Cache, communityId: string, topic: { id: string } | undefined): void {
  const community = { __typename: "Community", id: communityId };
  const key = topic && cache.keyOfEntity({ __typename: "Topic", id: topic.id });
  if (!key) return;
  for (const { fieldName, arguments: asked } of cache.inspectFields(community)) {
    if (fieldName !== "topics") continue;
    const known = cache.resolve(community, fieldName, asked) as string[] | null;
    if (known && !known.includes(key)) cache.link(community, fieldName, asked, [key, ...known]);
  }
}
