/** API operations of the home screens. */
import { graphql, type ResultOf } from "../api/graphql";

export const PostParts = graphql(`
  fragment PostParts on Post {
    id
    timestamp
    author { id handle name }
    text
    mediaUrls
    mentions { id handle name }
    linkPreview { url title description imageUrl siteName }
    fanOut { id postId state total delivered failed }
  }
`);
export type Post = ResultOf<typeof PostParts>;
export type FanOut = NonNullable<Post["fanOut"]>;

export const HomeFeed = graphql(
  `query HomeFeed($latest: Timestamp!, $inclusive: Boolean!) {
    page: homeFeed(latest: $latest, inclusive: $inclusive, limit: 30) { hasOlder hasNewer state items { ...PostParts } }
  }`,
  [PostParts],
);
export const LocalFeed = graphql(
  `query LocalFeed($latest: Timestamp!, $inclusive: Boolean!) {
    page: localFeed(latest: $latest, inclusive: $inclusive, limit: 30) { hasOlder hasNewer items { ...PostParts } }
  }`,
  [PostParts],
);
export const HashtagPosts = graphql(
  `query HashtagPosts($tag: String!, $latest: Timestamp!, $inclusive: Boolean!) {
    page: hashtagPosts(tag: $tag, latest: $latest, inclusive: $inclusive, limit: 30) { hasOlder hasNewer items { ...PostParts } }
  }`,
  [PostParts],
);
export const PostsOf = graphql(
  `query PostsOf($authorId: ID!, $latest: Timestamp!, $inclusive: Boolean!) {
    page: posts(authorId: $authorId, latest: $latest, inclusive: $inclusive, limit: 30) { hasOlder hasNewer items { ...PostParts } }
  }`,
  [PostParts],
);
export const HomeFeedEvents = graphql(
  `subscription HomeFeedEvents {
    homeFeedEvents {
      __typename
      ... on Event { cursor }
      ... on StreamReady { resumed }
      ... on PostArrived { post { ...PostParts } }
      ... on PostRemoved { postId }
    }
  }`,
  [PostParts],
);
export const FanOutEvents = graphql(`
  subscription FanOutEvents($postId: ID!) {
    jobEvents(jobId: $postId) {
      __typename
      ... on Event { cursor }
      ... on StreamReady { resumed }
      ... on FanOutChanged { fanOut { id postId state total delivered failed } }
    }
  }
`);
export const PostFanOut = graphql(
  `query PostFanOut($id: ID!) { post(id: $id) { id fanOut { id postId state total delivered failed } } }`,
);
export const CreatePost = graphql(
  `mutation CreatePost($input: CreatePostInput!) { createPost(input: $input) { ...PostParts } }`,
  [PostParts],
);
export const DeletePost = graphql(`mutation DeletePost($id: ID!) { deletePost(id: $id) { id } }`);

export const Profile = graphql(`
  query Profile($id: ID!) {
    user(id: $id) { id handle name roles followerCount followingCount following blocked }
  }
`);
export const Follow = graphql(
  `mutation Follow($id: ID!) { follow(userId: $id) { id following followerCount } }`,
);
export const Unfollow = graphql(
  `mutation Unfollow($id: ID!) { unfollow(userId: $id) { id following followerCount } }`,
);
export const Block = graphql(
  `mutation Block($id: ID!) { blockUser(userId: $id) { id blocked following followerCount } }`,
);
export const Unblock = graphql(
  `mutation Unblock($id: ID!) { unblockUser(userId: $id) { id blocked following followerCount } }`,
);

export const NotificationParts = graphql(`
  fragment NotificationParts on Notification {
    id
    timestamp
    kind
    actor { id handle name }
    message { id topicId timestamp text }
    post { id text }
    warning
    publication { id scheduledPostId }
  }
`);
export type Notification = ResultOf<typeof NotificationParts>;
export const Notifications = graphql(
  `query Notifications($latest: Timestamp!, $inclusive: Boolean!) {
    page: notifications(latest: $latest, inclusive: $inclusive, limit: 30) { hasOlder hasNewer items { ...NotificationParts } }
  }`,
  [NotificationParts],
);
export const NotificationEvents = graphql(
  `subscription NotificationEvents {
    notificationEvents {
      __typename
      ... on Event { cursor }
      ... on StreamReady { resumed }
      ... on NotificationArrived { notification { ...NotificationParts } }
    }
  }`,
  [NotificationParts],
);
export const UnreadNotifications = graphql(`query UnreadNotifications { unreadNotificationCount }`);
export const MarkNotificationsRead = graphql(
  `mutation MarkNotificationsRead($timestamp: Timestamp!) { markNotificationsRead(timestamp: $timestamp) }`,
);
export const ReactionsReceived = graphql(`
  query ReactionsReceived($latest: Timestamp!, $inclusive: Boolean!) {
    page: reactionsReceived(latest: $latest, inclusive: $inclusive, limit: 30) {
      hasOlder
      hasNewer
      items { timestamp emoji user { id handle name } message { id topicId timestamp text stamp { id name } } }
    }
  }
`);
