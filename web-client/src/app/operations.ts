/** API operations of the command palette and the account menu. */
import { graphql } from "../api/graphql";

export const FindUsers = graphql(
  `query FindUsers($query: String!) { users(query: $query, limit: 8) { id handle name avatarUrl } }`,
);
export const OwnMethod = graphql(`query OwnMethod { mySessions { method current } }`);
