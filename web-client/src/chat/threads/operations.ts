/** API operations of threads. */
import { graphql } from "../../api/graphql";
import { MessageParts } from "../operations";

export const ParentMessage = graphql(
  `query ParentMessage($id: ID!) { message(id: $id) { ...MessageParts } }`,
  [MessageParts],
);

const ThreadContent = graphql(`
  fragment ThreadContent on Message {
    id text editedAt deletedAt author { id name } stamp { id name } attachments { name }
  }
`);
export const FollowedThreads = graphql(
  `query FollowedThreads($limit: Int!) {
    followedThreads(latest: "now", limit: $limit) {
      hasOlder
      items {
        thread { id parentMessageId lastActivity unreadCount lastMessage { ...ThreadContent } }
        parentTopic { id title community { id name } }
        parentMessage { ...ThreadContent }
      }
    }
  }`,
  [ThreadContent],
);
