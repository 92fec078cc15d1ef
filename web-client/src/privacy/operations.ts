/** API operations of erasures. */
import { graphql, type ResultOf } from "../api/graphql";

const ErasureParts = graphql(`
  fragment ErasureParts on UserErasure {
    userId
    user { id handle name avatarUrl }
    state
    requestedAt
    stepsDone
    steps
    completedAt
  }
`);
export type Erasure = ResultOf<typeof ErasureParts>;

export const Erasures = graphql(
  `query Erasures($after: ID, $limit: Int!) {
    erasures(afterUserId: $after, limit: $limit) { ...ErasureParts }
  }`,
  [ErasureParts],
);
export const EraseUser = graphql(
  `mutation EraseUser($id: ID!, $handle: String!) {
    eraseUser(userId: $id, handle: $handle) { ...ErasureParts }
  }`,
  [ErasureParts],
);
