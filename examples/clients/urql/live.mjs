/**
 * Prints the messages of a topic as they arrive, with urql. Queries and mutations go over HTTP.
 *
 *     NOROSHI_TOKEN=... node live.mjs [text to post]
 */
import { Client, cacheExchange, fetchExchange, gql, subscriptionExchange } from "@urql/core";
import { WebSocket } from "ws";
import { createResumingClient } from "../graphql-ws/resume.mjs";

const VIEWER = gql`query Viewer { viewer { handle } communities(joined: true) { topics { id title } } }`;
const POST = gql`mutation Post($input: PostMessageInput!) { postMessage(input: $input) { timestamp } }`;
const EVENTS = gql`
  subscription Events($topicId: ID!, $since: Cursor) {
    topicEvents(topicId: $topicId, since: $since) {
      __typename
      ... on Event { cursor }
      ... on StreamReady { resumed }
      ... on MessagePosted { message { text author { handle } } }
    }
  }
`;

const { NOROSHI_URL = "http://127.0.0.1:8000", NOROSHI_TOKEN, NOROSHI_TOPIC } = process.env;
const authorization = `Bearer ${NOROSHI_TOKEN}`;
const socket = createResumingClient({
  url: `${NOROSHI_URL.replace("http", "ws")}/graphql`,
  webSocketImpl: WebSocket, // browsers and Node.js 22 have their own
  connectionParams: () => ({ authorization }),
});
const client = new Client({
  url: `${NOROSHI_URL}/graphql`,
  fetchOptions: () => ({ headers: { authorization } }),
  exchanges: [
    cacheExchange,
    fetchExchange,
    subscriptionExchange({
      forwardSubscription: ({ query, variables }) => ({
        subscribe: (sink) => ({ unsubscribe: socket.subscribe({ query, variables }, sink) }),
      }),
    }),
  ],
});

/** Returns the data of a result. Prints its first error otherwise, and ends. */
function dataOf({ data, error }) {
  if (!error) return data;
  const [{ message, extensions } = error.networkError] = error.graphQLErrors;
  console.error(`${extensions?.code}: ${message}`);
  process.exit(1);
}

async function handleEvent(event) {
  if (event.__typename === "StreamReady") {
    console.log(event.resumed ? "Resumed." : "Live.");
    const text = process.argv[2];
    if (text && !event.resumed) dataOf(await client.mutation(POST, { input: { topicId: topic, text } }));
  }
  if (event.__typename === "MessagePosted")
    console.log(`${event.message.author.handle}: ${event.message.text}`);
}

const { viewer, communities } = dataOf(await client.query(VIEWER, {}));
const topic = NOROSHI_TOPIC ?? communities.flatMap(({ topics }) => topics)[0].id;
console.log(`Signed in as ${viewer.handle}.`);
client
  .subscription(EVENTS, { topicId: topic })
  .subscribe((result) => handleEvent(dataOf(result).topicEvents));
