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

/** A query's field whatever it was asked with: by itself, the cache would forget only the one without arguments. */
function forget(cache: Cache, field: string): void {
  for (const known of cache.inspectFields("Query"))
    if (known.fieldName === field) cache.invalidate("Query", field, known.arguments);
}

/** A topic that is new, or has become active again, is among its community's from now on. */
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
