/** The normalised cache of communities, topics and people. Timelines are not in it (see timeline/). */
import { type Cache, cacheExchange } from "@urql/exchange-graphcache";

/** Object types without an `id`. The cache stores them inside the objects that refer to them. */
const TYPES_WITHOUT_ID = [
  "AccountAttention",
  "AccountConnection",
  "LinkPreview",
  "LinkPreviewImage",
  "Reaction",
  "StampRule",
  "TrendingTopic",
  "ReceivedReaction",
  "MessageTimeline",
  "HomeFeedTimeline",
  "PostTimeline",
  "NotificationTimeline",
  "ReactionTimeline",
  "TopicTimeline",
  "ThreadReply",
  "FollowedThread",
  "FollowedThreadTimeline",
  "ConversationTimeline",
  "ConversationPerson",
  "StreamReady",
  "TopicCreated",
  "TopicActivity",
  "TopicChanged",
  "CommunityChanged",
  "ConversationChanged",
  "NotificationArrived",
  "NotificationRemoved",
];

/** Mutations that hide notifications, or show them again. */
const MUTES = ["User", "Topic", "Community", "Post"].flatMap((name) => [`mute${name}`, `unmute${name}`]);

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
        archiveCommunity: (_result, _args, cache) => invalidate(cache, "communities"),
        unarchiveCommunity: (_result, _args, cache) => invalidate(cache, "communities"),
        leaveCommunity: (_result, _args, cache) => invalidate(cache, "communities"),
        createTopic: ({ createTopic }, { input }, cache) =>
          addTopic(cache, (input as { communityId: string }).communityId, createTopic as { id: string }),
        startConversation: (_result, _args, cache) => invalidate(cache, "conversations"),
        acceptConversation: (_result, _args, cache) => invalidate(cache, "conversations"),
        declineConversation: (_result, _args, cache) => invalidate(cache, "conversations"),
        leaveConversation: (_result, _args, cache) => invalidate(cache, "conversations"),
        followThread: (_result, _args, cache) => invalidate(cache, "followedThreads"),
        unfollowThread: (_result, _args, cache) => invalidate(cache, "followedThreads"),
        createStampPack: (_result, _args, cache) => invalidate(cache, "stampPacks"),
        removeStampPack: (_result, _args, cache) => invalidate(cache, "stampPacks"),
        ...Object.fromEntries(MUTES.map((name) => [name, countNotificationsAgain])),
        blockUser: (_result, _args, cache) => {
          countNotificationsAgain(_result, _args, cache);
          invalidate(cache, "blockedUsers");
          invalidate(cache, "conversations");
        },
        unblockUser: (_result, _args, cache) => invalidate(cache, "blockedUsers"),
      },
      Subscription: {
        communityEvents: ({ communityEvents: event }, { communityId }, cache) =>
          addTopic(cache, communityId as string, (event as { topic?: { id: string } }).topic),
        conversationEvents: ({ conversationEvents: event }, _args, cache) => {
          const { __typename, conversation } = event as { __typename: string; conversation?: { id: string } };
          if (__typename === "ConversationChanged" && !isListed(cache, conversation))
            invalidate(cache, "conversations");
        },
        notificationEvents: ({ notificationEvents: event }, _args, cache) => {
          const { notification } = event as { notification?: { kind: string } };
          if (notification?.kind === "ADDED_TO_COMMUNITY") invalidate(cache, "communities");
          if (notification?.kind === "STAMP_PACK_RECEIVED") invalidate(cache, "stampPacks");
          // A person who is mentioned in a thread follows it.
          if (notification?.kind === "THREAD_REPLY" || notification?.kind === "MENTION")
            invalidate(cache, "followedThreads");
        },
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

function countNotificationsAgain(_result: unknown, _args: unknown, cache: Cache): void {
  invalidate(cache, "unreadNotificationCount");
}

/** Returns whether a loaded page holds the conversation. */
function isListed(cache: Cache, conversation: { id: string } | undefined | null): boolean {
  const key = conversation && cache.keyOfEntity({ __typename: "Conversation", id: conversation.id });
  if (!key) return false;
  return cache.inspectFields("Query").some(({ fieldName, arguments: listArguments }) => {
    if (fieldName !== "conversations") return false;
    const page = cache.resolve("Query", fieldName, listArguments) as string | null;
    return ((cache.resolve(page, "items") ?? []) as string[]).includes(key);
  });
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
