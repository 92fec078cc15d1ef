/** API operations of presence. */
import { graphql, type ResultOf } from "../api/graphql";

/** Presence cannot be resumed, so the subscriptions select no cursor. */
export const PresenceEvents = graphql(`
  subscription PresenceEvents($communityId: ID, $userIds: [ID!]!) {
    presenceEvents(communityId: $communityId, userIds: $userIds) {
      __typename
      ... on OnlinePeopleChanged { onlineUserIds }
    }
  }
`);

export const TypingEvents = graphql(`
  subscription TypingEvents($topicId: ID!) {
    typingEvents(topicId: $topicId) {
      __typename
      ... on TypingStarted { user { id name } }
      ... on TypingEnded { user { id } }
    }
  }
`);

export const TypingUsers = graphql(`
  query TypingUsers($topicId: ID!) { typingUsers(topicId: $topicId) { id name } }
`);
export type TypingPerson = ResultOf<typeof TypingUsers>["typingUsers"][number];

export const SetTyping = graphql(`
  mutation SetTyping($topicId: ID!, $typing: Boolean!) { setTyping(topicId: $topicId, typing: $typing) }
`);

export const PresenceSettings = graphql(`query PresenceSettings { presenceSettings { shown enabled } }`);
export type LoadedPresenceSettings = ResultOf<typeof PresenceSettings>["presenceSettings"];

export const SetPresenceShown = graphql(
  `mutation SetPresenceShown($shown: Boolean!) { setPresenceShown(shown: $shown) { shown enabled } }`,
);
export const SetPresenceEnabled = graphql(
  `mutation SetPresenceEnabled($enabled: Boolean!) { setPresenceEnabled(enabled: $enabled) { shown enabled } }`,
);
