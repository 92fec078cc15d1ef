/** API operation of fields in which people are mentioned. */
import { graphql, type ResultOf } from "../../api/graphql";

export const People = graphql(`
  query People($query: String!, $communityId: ID) {
    users(query: $query, communityId: $communityId, limit: 6) { id handle name avatarUrl }
  }
`);
export type Person = ResultOf<typeof People>["users"][number];
