/**
 * Prints the messages of a topic as they arrive, with Apollo Client. Queries and mutations go over HTTP.
 *
 *     NOROSHI_TOKEN=... node live.mjs [text to post]
 */
import { ApolloClient, ApolloLink, gql, HttpLink, InMemoryCache, ServerError } from "@apollo/client";
import { GraphQLWsLink } from "@apollo/client/link/subscriptions";
import { OperationTypeNode } from "graphql";
import { WebSocket } from "ws";
import { createResumingClient } from "../graphql-ws/resume.mjs";
import { fetchPossibleTypes } from "./possible-types.mjs";

const VIEWER = gql`query Viewer { viewer { id handle } communities(joined: true) { id topics { id title } } }`;
const POST = gql`mutation Post($input: PostMessageInput!) { postMessage(input: $input) { id timestamp } }`;
const EVENTS = gql`
  subscription Events($topicId: ID!, $since: Cursor) {
    topicEvents(topicId: $topicId, since: $since) {
      __typename
      ... on Event { cursor }
      ... on StreamReady { resumed }
      ... on MessagePosted { message { id text author { id handle } } }
    }
  }
`;

const { NOROSHI_URL = "http://127.0.0.1:8000", NOROSHI_TOKEN, NOROSHI_TOPIC } = process.env;
const authorization = `Bearer ${NOROSHI_TOKEN}`;
// Apollo Client and graphql-ws need the global WebSocket of browsers, which Node.js has since version 22.
globalThis.WebSocket ??= WebSocket;
const socket = createResumingClient({
  url: `${NOROSHI_URL.replace("http", "ws")}/graphql`,
  connectionParams: () => ({ authorization }),
});
const client = new ApolloClient({
  // Without possibleTypes, the cache does not know that a MessagePosted is an Event.
  cache: new InMemoryCache({ possibleTypes: await fetchPossibleTypes(`${NOROSHI_URL}/graphql`) }),
  link: ApolloLink.split(
    ({ operationType }) => operationType === OperationTypeNode.SUBSCRIPTION,
    new GraphQLWsLink(socket),
    new HttpLink({ uri: `${NOROSHI_URL}/graphql`, headers: { authorization } }),
  ),
});

function fail(error) {
  // A ServerError has the status 401, for example, and the same errors in its body.
  const { errors = [error] } = ServerError.is(error) ? JSON.parse(error.bodyText) : error;
  const [{ message, extensions }] = errors;
  console.error(`${extensions?.code}: ${message}`);
  process.exit(1);
}

async function handleEvent(event) {
  if (event.__typename === "StreamReady") {
    console.log(event.resumed ? "Resumed." : "Live.");
    const text = process.argv[2];
    const variables = { input: { topicId: topic, text } };
    if (text && !event.resumed) await client.mutate({ mutation: POST, variables });
  }
  if (event.__typename === "MessagePosted")
    console.log(`${event.message.author.handle}: ${event.message.text}`);
}

const { data } = await client.query({ query: VIEWER }).catch(fail);
const topic = NOROSHI_TOPIC ?? data.communities.flatMap(({ topics }) => topics)[0].id;
console.log(`Signed in as ${data.viewer.handle}.`);
client.subscribe({ query: EVENTS, variables: { topicId: topic } }).subscribe({
  next: ({ data, error }) => (error ? fail(error) : handleEvent(data.topicEvents).catch(fail)),
  error: fail,
});
