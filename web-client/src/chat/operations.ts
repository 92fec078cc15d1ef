/** API operations of the chat. */
import { graphql, type ResultOf } from "../api/graphql";

export const MessageParts = graphql(`
  fragment MessageParts on Message {
    id
    timestamp
    topicId
    author { id handle name }
    text
    stamp { id name imageUrl }
    mentions { id handle name }
    reactions { emoji count reacted }
    linkPreview { url title description imageUrl siteName }
    editedAt
    deletedAt
  }
`);
export type Message = ResultOf<typeof MessageParts>;
export type Reaction = Message["reactions"][number];

const TopicParts = graphql(`
  fragment TopicParts on Topic {
    id
    title
    lastActivity
    unreadCount
    lastMessage { id text author { id name } stamp { id name } }
  }
`);
export type TopicRow = ResultOf<typeof TopicParts>;

export const JOINED_PAGE_SIZE = 50;
/** Requests 31 topics per community, one more than is shown: a 31st topic means that there are more. */
export const Communities = graphql(
  `query Communities($after: ID, $limit: Int!) {
    communities(joined: true, after: $after, limit: $limit) { id name description joined topics(limit: 31) { ...TopicParts } }
  }`,
  [TopicParts],
);
export type JoinedCommunity = ResultOf<typeof Communities>["communities"][number];

export const MostActiveTopics = graphql(
  `query MostActiveTopics($id: ID!) { community(id: $id) { id topics(limit: 31) { ...TopicParts } } }`,
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
      id name description memberCount joined visibility
    }
  }
`);

export const Trending = graphql(`
  query Trending {
    trendingTopics(limit: 5) { people topic { id title community { id name joined } } }
  }
`);

export const CommunityEvents = graphql(
  `subscription CommunityEvents($communityId: ID!) {
    communityEvents(communityId: $communityId) {
      __typename
      ... on Event { cursor }
      ... on StreamReady { resumed }
      ... on TopicCreated { topic { ...TopicParts } }
      ... on TopicActivity { topic { ...TopicParts } }
    }
  }`,
  [TopicParts],
);

export const TopicHeader = graphql(`
  query TopicHeader($id: ID!) {
    topic(id: $id) {
      id title readUpTo unreadCount
      community { id name joined memberCount description viewerRole viewerMutedUntil }
    }
  }
`);

export const MessagesBefore = graphql(
  `query MessagesBefore($topicId: ID!, $latest: Timestamp!, $inclusive: Boolean!) {
    messages(topicId: $topicId, latest: $latest, inclusive: $inclusive, limit: 50) { hasOlder hasNewer items { ...MessageParts } }
  }`,
  [MessageParts],
);
export const MessagesAfter = graphql(
  `query MessagesAfter($topicId: ID!, $oldest: Timestamp!) {
    messages(topicId: $topicId, oldest: $oldest, inclusive: false, limit: 50) { hasOlder hasNewer items { ...MessageParts } }
  }`,
  [MessageParts],
);
export const MessagesAround = graphql(
  `query MessagesAround($topicId: ID!, $timestamp: Timestamp!) {
    messagesAround(topicId: $topicId, timestamp: $timestamp, limit: 60) { hasOlder hasNewer items { ...MessageParts } }
  }`,
  [MessageParts],
);

export const TopicEvents = graphql(
  `subscription TopicEvents($topicId: ID!) {
    topicEvents(topicId: $topicId) {
      __typename
      ... on Event { cursor }
      ... on StreamReady { resumed }
      ... on MessagePosted { message { ...MessageParts } }
      ... on MessageEdited { message { ...MessageParts } }
      ... on MessageDeleted { message { ...MessageParts } }
      ... on ReactionsChanged { message { ...MessageParts } }
    }
  }`,
  [MessageParts],
);

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
    message(id: $id) { id reactions { emoji count users(limit: 50) { id handle name } } }
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
