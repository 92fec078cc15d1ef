/** API operations of the chat. */
import { graphql, type ResultOf } from "../api/graphql";
import { AttachmentParts } from "../files/operations";
import type { CommunityRole } from "../moderation/operations";

export const MessageParts = graphql(
  `
  fragment MessageParts on Message {
    id
    timestamp
    topicId
    author { id handle name avatarUrl }
    text
    stamp { id name imageUrl }
    mentions { id handle name }
    reactions { emoji count reacted }
    thread { id topicId replyCount lastReplyAt lastRepliers { id handle name avatarUrl } }
    linkPreview { url title description imageUrl image { width height blurhash } siteName }
    attachments { ...AttachmentParts }
    quote {
      message { id topicId timestamp text editedAt deletedAt author { id name } stamp { id name } attachments { name } }
    }
    threadReply {
      threadId
      message { id timestamp }
      parentMessage { id text editedAt deletedAt author { id name } stamp { id name } attachments { name } }
    }
    alsoInTopic
    editedAt
    deletedAt
  }
`,
  [AttachmentParts],
);
/** A message. Moderators also load the role of its author, which says whether they may act on the author. */
export type Message = ResultOf<typeof MessageParts> & { authorRole?: CommunityRole | null };
export type QuotedMessage = NonNullable<NonNullable<Message["quote"]>["message"]>;
export type Reaction = Message["reactions"][number];

const TopicParts = graphql(`
  fragment TopicParts on Topic {
    id
    title
    archivedAt
    lastActivity
    unreadCount
    lastMessage { id text editedAt deletedAt author { id name } stamp { id name } attachments { name } }
  }
`);
export type TopicRow = ResultOf<typeof TopicParts>;

export const JOINED_PAGE_SIZE = 50;
/**
 * Requests 31 topics per community, one more than is shown: a 31st topic means that there are more. Archived communities
 * are loaded too, because they appear again when they are reopened.
 */
export const Communities = graphql(
  `query Communities($after: ID, $limit: Int!) {
    communities(joined: true, includeArchived: true, after: $after, limit: $limit) {
      id name description pictureUrl joined archivedAt topics(limit: 31) { ...TopicParts }
    }
  }`,
  [TopicParts],
);
export type JoinedCommunity = ResultOf<typeof Communities>["communities"][number];

export const MostActiveTopics = graphql(
  `query MostActiveTopics($id: ID!) { community(id: $id) { id name archivedAt topics(limit: 31) { ...TopicParts } } }`,
  [TopicParts],
);
/**
 * Topics whose last activity is not after `latest`. The bound is inclusive, because two topics may have been active in
 * the same microsecond.
 */
export const MoreTopics = graphql(
  `query MoreTopics($communityId: ID!, $latest: Timestamp!) {
    communityTopics(communityId: $communityId, latest: $latest, limit: 31) { hasOlder items { ...TopicParts } }
  }`,
  [TopicParts],
);

export const COMMUNITIES_PAGE_SIZE = 50;
export const OtherCommunities = graphql(`
  query OtherCommunities($after: ID, $limit: Int!) {
    communities(joined: false, after: $after, limit: $limit) {
      id name description pictureUrl memberCount joined visibility
    }
  }
`);

export const ArchivedCommunities = graphql(`
  query ArchivedCommunities($after: ID, $limit: Int!) {
    communities(joined: true, includeArchived: true, after: $after, limit: $limit) { id name archivedAt }
  }
`);

export const Trending = graphql(`
  query Trending {
    trendingTopics(limit: 5) { people topic { id title community { id name joined } } }
  }
`);

export const CommunityEvents = graphql(
  `subscription CommunityEvents($communityId: ID!, $since: Cursor) {
    communityEvents(communityId: $communityId, since: $since) {
      __typename
      ... on Event { cursor }
      ... on StreamReady { resumed }
      ... on TopicCreated { topic { ...TopicParts } }
      ... on TopicActivity { topic { ...TopicParts } }
      ... on TopicChanged { topic { ...TopicParts } }
      ... on CommunityChanged { community { id name description pictureUrl bannerUrl visibility archivedAt } }
    }
  }`,
  [TopicParts],
);

export const TopicHeader = graphql(`
  query TopicHeader($id: ID!) {
    topic(id: $id) {
      id title parentMessageId archivedAt muted readUpTo unreadCount slowModeSeconds
      community { id name joined visibility memberCount description viewerRole viewerMutedUntil archivedAt }
    }
  }
`);

export const MessagesBefore = graphql(
  `query MessagesBefore($topicId: ID!, $latest: Timestamp!, $inclusive: Boolean!, $withRoles: Boolean!) {
    messages(topicId: $topicId, latest: $latest, inclusive: $inclusive, limit: 50) {
      hasOlder hasNewer items { ...MessageParts authorRole @include(if: $withRoles) }
    }
  }`,
  [MessageParts],
);
export const MessagesAfter = graphql(
  `query MessagesAfter($topicId: ID!, $oldest: Timestamp!, $withRoles: Boolean!) {
    messages(topicId: $topicId, oldest: $oldest, inclusive: false, limit: 50) {
      hasOlder hasNewer items { ...MessageParts authorRole @include(if: $withRoles) }
    }
  }`,
  [MessageParts],
);
export const MessagesAround = graphql(
  `query MessagesAround($topicId: ID!, $timestamp: Timestamp!, $withRoles: Boolean!) {
    messagesAround(topicId: $topicId, timestamp: $timestamp, limit: 60) {
      hasOlder hasNewer items { ...MessageParts authorRole @include(if: $withRoles) }
    }
  }`,
  [MessageParts],
);

export const TopicEvents = graphql(
  `subscription TopicEvents($topicId: ID!, $withRoles: Boolean!, $since: Cursor) {
    topicEvents(topicId: $topicId, since: $since) {
      __typename
      ... on Event { cursor }
      ... on StreamReady { resumed }
      ... on MessagePosted { message { ...MessageParts authorRole @include(if: $withRoles) } }
      ... on MessageEdited { message { ...MessageParts } }
      ... on MessageDeleted { message { ...MessageParts } }
      ... on ReactionsChanged { message { ...MessageParts } }
      ... on ThreadChanged { message { ...MessageParts } }
      ... on MessagePinned { message { ...MessageParts } }
      ... on MessageUnpinned { message { ...MessageParts } }
      ... on TopicChanged { topic { id } }
    }
  }`,
  [MessageParts],
);

export const PinnedMessages = graphql(
  `query PinnedMessages($topicId: ID!) { topic(id: $topicId) { id pinnedMessages { ...MessageParts } } }`,
  [MessageParts],
);
export const PinMessage = graphql(
  `mutation PinMessage($id: ID!) { pinMessage(messageId: $id) { ...MessageParts } }`,
  [MessageParts],
);
export const UnpinMessage = graphql(
  `mutation UnpinMessage($id: ID!) { unpinMessage(messageId: $id) { ...MessageParts } }`,
  [MessageParts],
);
export const SetSlowMode = graphql(
  `mutation SetSlowMode($id: ID!, $seconds: Int!) { setSlowMode(topicId: $id, seconds: $seconds) { id slowModeSeconds } }`,
);

export const RenameTopic = graphql(
  `mutation RenameTopic($id: ID!, $title: String!) { renameTopic(topicId: $id, title: $title) { id title } }`,
);
export const ArchiveTopic = graphql(
  `mutation ArchiveTopic($id: ID!) { archiveTopic(topicId: $id) { id archivedAt } }`,
);
export const UnarchiveTopic = graphql(
  `mutation UnarchiveTopic($id: ID!) { unarchiveTopic(topicId: $id) { ...TopicParts } }`,
  [TopicParts],
);
export const ArchivedTopics = graphql(`
  query ArchivedTopics($communityId: ID!, $latest: Timestamp!, $limit: Int!) {
    communityTopics(communityId: $communityId, latest: $latest, limit: $limit, inclusive: false, archived: true) {
      items { id title lastActivity }
    }
  }
`);

export const PostMessage = graphql(
  `mutation PostMessage($input: PostMessageInput!) { postMessage(input: $input) { ...MessageParts } }`,
  [MessageParts],
);
export const EditMessage = graphql(
  `mutation EditMessage($id: ID!, $text: String!) { editMessage(id: $id, text: $text) { ...MessageParts } }`,
  [MessageParts],
);
export const DeleteMessage = graphql(
  `mutation DeleteMessage($id: ID!) { deleteMessage(id: $id) { ...MessageParts } }`,
  [MessageParts],
);
export const AddReaction = graphql(
  `mutation AddReaction($id: ID!, $emoji: String!) { addReaction(messageId: $id, emoji: $emoji) { ...MessageParts } }`,
  [MessageParts],
);
export const RemoveReaction = graphql(
  `mutation RemoveReaction($id: ID!, $emoji: String!) { removeReaction(messageId: $id, emoji: $emoji) { ...MessageParts } }`,
  [MessageParts],
);
export const MarkRead = graphql(`
  mutation MarkRead($topicId: ID!, $timestamp: Timestamp!) {
    markRead(topicId: $topicId, timestamp: $timestamp) { id unreadCount readUpTo }
  }
`);
export const WhoReacted = graphql(`
  query WhoReacted($id: ID!) {
    message(id: $id) { id reactions { emoji count users(limit: 50) { id handle name avatarUrl } } }
  }
`);
export const Stamps = graphql(`query Stamps { stamps { id name imageUrl } }`);
export type Stamp = ResultOf<typeof Stamps>["stamps"][number];

export const JoinCommunity = graphql(
  `mutation JoinCommunity($id: ID!) { joinCommunity(communityId: $id) { id joined memberCount viewerRole } }`,
);
export const RequestToJoin = graphql(`
  mutation RequestToJoin($id: ID!, $message: String!) {
    requestToJoin(communityId: $id, message: $message) { id joined memberCount }
  }
`);
export const LeaveCommunity = graphql(
  `mutation LeaveCommunity($id: ID!) { leaveCommunity(communityId: $id) { id joined memberCount } }`,
);
export const CreateCommunity = graphql(
  `mutation CreateCommunity($input: CreateCommunityInput!) { createCommunity(input: $input) { id joined } }`,
);
export const CreateTopic = graphql(
  `mutation CreateTopic($input: CreateTopicInput!) { createTopic(input: $input) { ...TopicParts } }`,
  [TopicParts],
);
