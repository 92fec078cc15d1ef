/** The operations of live.mjs. relay-compiler reads them and writes the folder __generated__. */
import { graphql } from "relay-runtime";

export const viewerQuery = graphql`
  query operationsViewerQuery {
    viewer { handle }
    communities(joined: true) { topics { id title } }
  }
`;

export const postMutation = graphql`
  mutation operationsPostMutation($input: PostMessageInput!) {
    postMessage(input: $input) { timestamp }
  }
`;

export const eventsSubscription = graphql`
  subscription operationsEventsSubscription($topicId: ID!, $since: Cursor) {
    topicEvents(topicId: $topicId, since: $since) {
      __typename
      ... on Event { cursor }
      ... on StreamReady { resumed }
      ... on MessagePosted { message { text author { handle } } }
    }
  }
`;
