/** The normalised cache: communities, topics and people, each once. Timelines are windows of their own (timeline/). */
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

/** A new cache; it belongs to one signed-in user. */
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
        createTopic: (_result, _args, cache) => forget(cache, "communities"),
        blockUser: (_result, _args, cache) => forget(cache, "blockedUsers"),
        unblockUser: (_result, _args, cache) => forget(cache, "blockedUsers"),
      },
    },
  });
}

/** A query's field whatever it was asked with: by itself, the cache would forget only the one without arguments. */
function forget(cache: Cache, field: string): void {
  for (const known of cache.inspectFields("Query"))
    if (known.fieldName === field) cache.invalidate("Query", field, known.arguments);
}
