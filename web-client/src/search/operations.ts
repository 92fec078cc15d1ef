/** API operations of the search screen. */
import { graphql, type ResultOf } from "../api/graphql";

export const SearchMessages = graphql(
  `query SearchMessages($query: String!, $latest: Timestamp!, $timeZone: String!) {
    page: searchMessages(query: $query, latest: $latest, limit: 30, timeZone: $timeZone) {
      hasOlder oldest searchedTo
      items {
        message { id timestamp editedAt deletedAt author { id handle name } stamp { id name imageUrl } }
        topic { id title parentMessageId community { id name } }
        excerpt { text isMatch }
      }
    }
  }`,
);
export const SearchPosts = graphql(
  `query SearchPosts($query: String!, $latest: Timestamp!, $timeZone: String!) {
    page: searchPosts(query: $query, latest: $latest, limit: 30, timeZone: $timeZone) {
      hasOlder oldest searchedTo
      items {
        post { id timestamp editedAt author { id handle name } }
        excerpt { text isMatch }
      }
    }
  }`,
);
export const SearchTopics = graphql(
  `query SearchTopics($query: String!, $latest: Timestamp!, $timeZone: String!) {
    page: searchTopics(query: $query, latest: $latest, limit: 30, timeZone: $timeZone) {
      hasOlder oldest searchedTo
      items {
        topic { id title createdAt parentMessageId community { id name } }
        excerpt { text isMatch }
      }
    }
  }`,
);
export const SearchPeople = graphql(
  `query SearchPeople($query: String!, $afterUserId: ID) {
    people: searchPeople(query: $query, afterUserId: $afterUserId, limit: 50) {
      user { id handle name avatarUrl bio deactivated blocked }
      nameExcerpt { text isMatch }
      handleExcerpt { text isMatch }
    }
  }`,
);

export type MessageMatch = ResultOf<typeof SearchMessages>["page"]["items"][number];
export type PostMatch = ResultOf<typeof SearchPosts>["page"]["items"][number];
export type TopicMatch = ResultOf<typeof SearchTopics>["page"]["items"][number];
export type PersonMatch = ResultOf<typeof SearchPeople>["people"][number];
