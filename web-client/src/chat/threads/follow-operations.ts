/** API operations that follow a thread, and end that. */
import { graphql } from "../../api/graphql";

export const IsThreadFollowed = graphql(
  `query IsThreadFollowed($id: ID!) { message(id: $id) { id thread { id followed } } }`,
);
export const FollowThread = graphql(
  `mutation FollowThread($id: ID!) { followThread(messageId: $id) { id thread { id followed } } }`,
);
export const UnfollowThread = graphql(
  `mutation UnfollowThread($id: ID!) { unfollowThread(messageId: $id) { id thread { id followed } } }`,
);
