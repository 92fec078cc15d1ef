/** API operations of scheduled posts that wait for the decision of an administrator. */
import { graphql, type ResultOf } from "../api/graphql";
import { TargetParts } from "../publishing/operations";

const HeldPostParts = graphql(
  `fragment HeldPostParts on ScheduledPost {
    id
    author { id handle name avatarUrl }
    text
    media { url }
    dueAt
    publications { id target { ...TargetParts } }
  }`,
  [TargetParts],
);
export type HeldPost = ResultOf<typeof HeldPostParts>;

export const HeldPosts = graphql(
  `query HeldPosts($after: ID, $limit: Int!) {
    heldScheduledPosts(after: $after, limit: $limit) { ...HeldPostParts }
  }`,
  [HeldPostParts],
);
export const ReleaseHeldPost = graphql(`
  mutation ReleaseHeldPost($id: ID!, $userId: ID!, $dueAt: DateTime) {
    releaseScheduledPost(heldPostId: $id, responsibleUserId: $userId, dueAt: $dueAt) { id }
  }
`);
export const CancelHeldPost = graphql(
  `mutation CancelHeldPost($id: ID!) { cancelScheduledPost(id: $id) { id } }`,
);
