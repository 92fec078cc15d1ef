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

/** The messages of a topic, from the newest. In React: usePaginationFragment(historyFragment, topic). */
export const historyFragment = graphql`
  fragment operationsHistory_topic on Topic
  @argumentDefinitions(first: { type: "Int", defaultValue: 20 }, after: { type: "Timestamp" })
  @refetchable(queryName: "operationsHistoryQuery") {
    messages(first: $first, after: $after) @connection(key: "operationsHistory_messages") {
      edges { node { text author { handle } } }
    }
  }
`;
