/** The normalised cache of communities, topics and people. Timelines are not in it (see timeline/). */
import { type Cache, cacheExchange } from "@urql/exchange-graphcache";

/** Object types without an `id`. The cache stores them inside the objects that refer to them. */
const TYPES_WITHOUT_ID = [
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
    keys: Object.fromEntries(TYPES_WITHOUT_ID.map((name) => [name, () => null])),
    optimistic: {
      follow: ({ userId }) => ({ __typename: "User", id: userId, following: true }),
      unfollow: ({ userId }) => ({ __typename: "User", id: userId, following: false }),
    },
    updates: {
      Mutation: {
        createCommunity: (_result, _args, cache) => invalidate(cache, "communities"),
        joinCommunity: (_result, _args, cache) => invalidate(cache, "communities"),
        leaveCommunity: (_result, _args, cache) => invalidate(cache, "communities"),
        createTopic: ({ createTopic }, { input }, cache) =>
          addTopic(cache, (input as { communityId: string }).communityId, createTopic as { id: string }),
        blockUser: (_result, _args, cache) => invalidate(cache, "blockedUsers"),
        unblockUser: (_result, _args, cache) => invalidate(cache, "blockedUsers"),
      },
      Subscription: {
        communityEvents: ({ communityEvents: event }, { communityId }, cache) =>
          addTopic(cache, communityId as string, (event as { topic?: { id: string } }).topic),
      },
    },
  });
}

/**
 * Invalidates a query's field for all arguments. `Cache.invalidate` alone handles only one set of arguments.
 */
function invalidate(cache: Cache, field: string): void {
  for (const query of cache.inspectFields("Query"))
    if (query.fieldName === field) cache.invalidate("Query", field, query.arguments);
}

/** Adds a new or newly active topic to its community's list. */
function addTopic(cache: Cache, communityId: string, topic: { id: string } | undefined): void {
  const community = { __typename: "Community", id: communityId };
  const key = topic && cache.keyOfEntity({ __typename: "Topic", id: topic.id });
  if (!key) return;
  for (const { fieldName, arguments: listArguments } of cache.inspectFields(community)) {
    if (fieldName !== "topics") continue;
    const topics = cache.resolve(community, fieldName, listArguments) as string[] | null;
    if (topics && !topics.includes(key)) cache.link(community, fieldName, listArguments, [key, ...topics]);
  }
}
