/** API operations of conversations. The messages of a conversation are read and written as those of a topic. */
import { graphql, type ResultOf } from "../../api/graphql";

const ConversationParts = graphql(`
  fragment ConversationParts on Conversation {
    id
    name
    isGroup
    state
    people { joined user { id name handle } }
    topic {
      id title archivedAt lastActivity unreadCount muted
      lastMessage { id timestamp text editedAt deletedAt author { id name } stamp { id name } attachments { name } }
    }
  }
`);
export type Conversation = ResultOf<typeof ConversationParts>;
export type ConversationState = Conversation["state"];

export const CONVERSATIONS_PAGE_SIZE = 20;
export const Conversations = graphql(
  `query Conversations($state: ConversationState!, $latest: Timestamp!, $limit: Int!) {
    conversations(state: $state, latest: $latest, limit: $limit) { hasOlder items { ...ConversationParts } }
  }`,
  [ConversationParts],
);
export type ConversationPage = ResultOf<typeof Conversations>["conversations"];

export const OneConversation = graphql(
  `query OneConversation($id: ID!) { conversation(id: $id) { ...ConversationParts } }`,
  [ConversationParts],
);

export const ConversationEvents = graphql(
  `subscription ConversationEvents($since: Cursor) {
    conversationEvents(since: $since) {
      __typename
      ... on Event { cursor }
      ... on StreamReady { resumed }
      ... on ConversationChanged { at conversationId conversation { ...ConversationParts } }
    }
  }`,
  [ConversationParts],
);

export const StartConversation = graphql(
  `mutation StartConversation($input: StartConversationInput!) {
    startConversation(input: $input) { ...ConversationParts }
  }`,
  [ConversationParts],
);
export const AcceptConversation = graphql(
  `mutation AcceptConversation($id: ID!) { acceptConversation(conversationId: $id) { ...ConversationParts } }`,
  [ConversationParts],
);
export const DeclineConversation = graphql(
  `mutation DeclineConversation($id: ID!) { declineConversation(conversationId: $id) }`,
);
export const LeaveConversation = graphql(
  `mutation LeaveConversation($id: ID!) { leaveConversation(conversationId: $id) }`,
);
export const AddToConversation = graphql(
  `mutation AddToConversation($id: ID!, $userIds: [ID!]!) {
    addToConversation(conversationId: $id, userIds: $userIds) { ...ConversationParts }
  }`,
  [ConversationParts],
);
export const RenameConversation = graphql(
  `mutation RenameConversation($id: ID!, $name: String!) {
    renameConversation(conversationId: $id, name: $name) { ...ConversationParts }
  }`,
  [ConversationParts],
);

export const FindPeople = graphql(
  `query FindPeople($query: String!) { users(query: $query, limit: 6) { id handle name avatarUrl } }`,
);
