/** API operations of the home screens. */
import { graphql, type ResultOf } from "../api/graphql";
import { AttachmentParts } from "../files/operations";

const QuotedPostParts = graphql(
  `
  fragment QuotedPostParts on Post {
    id timestamp author { id handle name avatarUrl } text mediaUrls mentions { id handle name } editedAt
    attachments { ...AttachmentParts }
  }
`,
  [AttachmentParts],
);
export type QuotedPost = ResultOf<typeof QuotedPostParts>;
const PostContent = graphql(
  `
  fragment PostContent on Post {
    id
    timestamp
    author { id handle name avatarUrl }
    text
    mediaUrls
    mentions { id handle name }
    linkPreview { url title description imageUrl image { width height blurhash } siteName }
    attachments { ...AttachmentParts }
    editedAt
    inReplyTo { id author { id name } }
    replyCount
    repostCount
    reposted
    isQuote
    quoteOf { ...QuotedPostParts }
    quoteCount
    reactions { emoji count reacted }
    muted
  }
`,
  [AttachmentParts, QuotedPostParts],
);
export const PostParts = graphql(
  `fragment PostParts on Post { ...PostContent isRepost repostOf { ...PostContent } }`,
  [PostContent],
);
export type PostBody = ResultOf<typeof PostContent>;
export type Post = ResultOf<typeof PostParts>;

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
export const HomeFeedEvents = graphql(`subscription HomeFeedEvents($since: Cursor) {
    homeFeedEvents(since: $since) {
      __typename
      ... on Event { cursor }
      ... on StreamReady { resumed }
      ... on PostArrived { post { id author { id } } }
      ... on PostRemoved { postId }
    }
}`);
export type PostListEvent = ResultOf<typeof HomeFeedEvents>["homeFeedEvents"];
export const LocalEvents = graphql(`subscription LocalEvents($since: Cursor) {
    localEvents(since: $since) {
      __typename
      ... on Event { cursor }
      ... on StreamReady { resumed }
      ... on PostArrived { post { id author { id } } }
      ... on PostRemoved { postId }
    }
}`);
export const HashtagEvents = graphql(`subscription HashtagEvents($tag: String!, $since: Cursor) {
    hashtagEvents(tag: $tag, since: $since) {
      __typename
      ... on Event { cursor }
      ... on StreamReady { resumed }
      ... on PostArrived { post { id author { id } } }
      ... on PostRemoved { postId }
    }
}`);
export const FanOutEvents = graphql(`
  subscription FanOutEvents($postId: ID!, $since: Cursor) {
    jobEvents(jobId: $postId, since: $since) {
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
export const PostWithReplies = graphql(
  `query PostWithReplies($id: ID!, $latest: Timestamp!, $inclusive: Boolean!) {
    post(id: $id) {
      ...PostParts
      fanOut { id postId state total delivered failed }
      parent: inReplyTo { ...PostContent }
      replies(latest: $latest, inclusive: $inclusive, limit: 30) { hasOlder hasNewer items { ...PostParts } }
    }
  }`,
  [PostParts, PostContent],
);
export type OpenPost = NonNullable<ResultOf<typeof PostWithReplies>["post"]>;
export type FanOut = NonNullable<OpenPost["fanOut"]>;
/** A post that an event has announced. */
export const ArrivedPost = graphql(`query ArrivedPost($id: ID!) { post(id: $id) { ...PostParts } }`, [
  PostParts,
]);
export const AddPostReaction = graphql(
  `mutation AddPostReaction($id: ID!, $emoji: String!) { addPostReaction(postId: $id, emoji: $emoji) { id } }`,
);
export const RemovePostReaction = graphql(
  `mutation RemovePostReaction($id: ID!, $emoji: String!) { removePostReaction(postId: $id, emoji: $emoji) { id } }`,
);
export const WhoReactedToPost = graphql(`
  query WhoReactedToPost($id: ID!) {
    post(id: $id) { id reactions { emoji count users(limit: 50) { id handle name avatarUrl } } }
  }
`);
export const Repost = graphql(`mutation Repost($id: ID!) { repost(postId: $id) { id } }`);
export const UndoRepost = graphql(`mutation UndoRepost($id: ID!) { undoRepost(postId: $id) { id } }`);
export const EditPost = graphql(`
  mutation EditPost($id: ID!, $text: String!) {
    editPost(id: $id, text: $text) {
      id
      text
      editedAt
      mentions { id handle name }
      linkPreview { url title description imageUrl image { width height blurhash } siteName }
    }
  }
`);
export const PostVersions = graphql(
  `query PostVersions($id: ID!) { post(id: $id) { id versions { text writtenAt } } }`,
);
export const DeletePost = graphql(`mutation DeletePost($id: ID!) { deletePost(id: $id) { id } }`);

export const Profile = graphql(`
  query Profile($id: ID!) {
    user(id: $id) {
      id handle name avatarUrl bannerUrl bio roles followerCount followingCount following blocked muted
    }
  }
`);
export const ChangeHandle = graphql(
  `mutation ChangeHandle($handle: String!) { changeHandle(handle: $handle) { id handle } }`,
);
export const UpdateProfile = graphql(
  `mutation UpdateProfile($input: UpdateProfileInput!) { updateProfile(input: $input) { id name bio } }`,
);
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
    subjectId
    emoji
    actor { id handle name avatarUrl }
    message { id topicId timestamp text editedAt deletedAt stamp { id name } }
    post { id text editedAt }
    warning
    publication { id scheduledPostId }
    account { id name }
    reportOutcome
    community { id name joined }
    stampPack { id name }
    conversation { id name isGroup topic { id } }
  }
`);
export type Notification = ResultOf<typeof NotificationParts>;
export const Notifications = graphql(
  `query Notifications($latest: Timestamp!, $inclusive: Boolean!) {
    page: notifications(latest: $latest, inclusive: $inclusive, limit: 30) {
      hasOlder hasNewer readUpTo items { ...NotificationParts }
    }
  }`,
  [NotificationParts],
);
export const NotificationEvents = graphql(
  `subscription NotificationEvents($since: Cursor) {
    notificationEvents(since: $since) {
      __typename
      ... on Event { cursor }
      ... on StreamReady { resumed }
      ... on NotificationArrived { notification { ...NotificationParts } }
      ... on NotificationRemoved { notificationId }
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
      items { timestamp emoji user { id handle name avatarUrl } message { id topicId timestamp text editedAt deletedAt stamp { id name } } }
    }
  }
`);
export type ReceivedReaction = ResultOf<typeof ReactionsReceived>["page"]["items"][number];
