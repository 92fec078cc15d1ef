/** The normalised cache: communities, topics and people, each once. Timelines are windows of their own (timeline/). */
import { cacheExchange } from "@urql/exchange-graphcache";

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
        createCommunity: (_result, _args, cache) => cache.invalidate("Query", "communities"),
        joinCommunity: (_result, _args, cache) => cache.invalidate("Query", "communities"),
        leaveCommunity: (_result, _args, cache) => cache.invalidate("Query", "communities"),
        createTopic: (_result, _args, cache) => cache.invalidate("Query", "communities"),
        blockUser: (_result, _args, cache) => cache.invalidate("Query", "blockedUsers"),
        unblockUser: (_result, _args, cache) => cache.invalidate("Query", "blockedUsers"),
      },
    },
  });
}
