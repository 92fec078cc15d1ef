/** API operations of the viewer's mutes. Mutations return `muted`, so that the cache shows the change everywhere. */
import type { TypedDocumentNode } from "urql";
import { graphql, type ResultOf } from "../api/graphql";

const MuteParts = graphql(`
  fragment MuteParts on Mute {
    id subject subjectId until
    user { id name }
    topic { id title parentMessageId }
    community { id name }
    post { id text author { id name } }
  }
`);
export type Mute = ResultOf<typeof MuteParts>;
export type MuteSubject = Mute["subject"];

export const MyMutes = graphql(
  `query MyMutes($of: MuteSubject, $after: ID, $limit: Int!) {
    myMutes(of: $of, after: $after, limit: $limit) { ...MuteParts }
  }`,
  [MuteParts],
);

export const ParentOfThread = graphql(`
  query ParentOfThread($id: ID!) {
    message(id: $id) {
      id topicId text editedAt deletedAt author { id name } stamp { id name } attachments { name }
    }
  }
`);
export const PlaceOfThread = graphql(
  `query PlaceOfThread($id: ID!) { topic(id: $id) { id title community { id name } } }`,
);

type MuteMutations = Record<MuteSubject, TypedDocumentNode<unknown, { id: string; until: string | null }>>;
type UnmuteMutations = Record<MuteSubject, TypedDocumentNode<unknown, { id: string }>>;

/** `until` is null for a mute that lasts until the viewer ends it. */
export const MUTE: MuteMutations = {
  USER: graphql(`
    mutation MuteUser($id: ID!, $until: DateTime) { muteUser(userId: $id, until: $until) { id user { id muted } } }
  `),
  TOPIC: graphql(`
    mutation MuteTopic($id: ID!, $until: DateTime) {
      muteTopic(topicId: $id, until: $until) { id topic { id muted } }
    }
  `),
  COMMUNITY: graphql(`
    mutation MuteCommunity($id: ID!, $until: DateTime) {
      muteCommunity(communityId: $id, until: $until) { id community { id muted } }
    }
  `),
  POST: graphql(
    `mutation MutePost($id: ID!, $until: DateTime) { mutePost(postId: $id, until: $until) { id } }`,
  ),
};
export const UNMUTE: UnmuteMutations = {
  USER: graphql(`mutation UnmuteUser($id: ID!) { unmuteUser(userId: $id) { id muted } }`),
  TOPIC: graphql(`mutation UnmuteTopic($id: ID!) { unmuteTopic(topicId: $id) { id muted } }`),
  COMMUNITY: graphql(`mutation UnmuteCommunity($id: ID!) { unmuteCommunity(communityId: $id) { id muted } }`),
  POST: graphql(`mutation UnmutePost($id: ID!) { unmutePost(postId: $id) { id } }`),
};
