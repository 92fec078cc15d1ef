/**
 * Prints the messages of a topic as they arrive, and resumes after a lost connection. Everything goes over one socket.
 *
 *     NOROSHI_TOKEN=... node live.mjs [text to post]
 */
import { WebSocket } from "ws";
import { createResumingClient } from "./resume.mjs";

const VIEWER = "{ viewer { handle } communities(joined: true) { topics { id title } } }";
const POST = "mutation ($input: PostMessageInput!) { postMessage(input: $input) { timestamp } }";
const EVENTS = `subscription ($topicId: ID!, $since: Cursor) {
  topicEvents(topicId: $topicId, since: $since) {
    __typename
    ... on Event { cursor }
    ... on StreamReady { resumed }
    ... on MessagePosted { message { text author { handle } } }
  }
}`;

const { NOROSHI_URL = "http://127.0.0.1:8000", NOROSHI_TOKEN, NOROSHI_TOPIC } = process.env;
const client = createResumingClient({
  url: `${NOROSHI_URL.replace("http", "ws")}/graphql`,
  webSocketImpl: WebSocket, // browsers and Node.js 22 have their own
  // A function is called before each connection, so it can return a new token when the old one has expired.
  connectionParams: () => ({ authorization: `Bearer ${NOROSHI_TOKEN}` }),
});

/** Runs a query or a mutation, and returns its data. */
async function run(query, variables) {
  for await (const { data, errors } of client.iterate({ query, variables })) {
    if (errors) throw errors;
    return data;
  }
}

function fail(error) {
  // An array of GraphQL errors, or the event by which the server closed the socket for good.
  const [{ code, message }] = Array.isArray(error)
    ? error.map(({ message, extensions }) => ({ code: extensions.code, message }))
    : [{ code: error.code, message: error.reason }];
  console.error(`${code}: ${message}`);
  process.exit(1);
}

async function handleEvent(event) {
  if (event.__typename === "StreamReady") {
    console.log(event.resumed ? "Resumed." : "Live.");
    const text = process.argv[2];
    if (text && !event.resumed) await run(POST, { input: { topicId: topic, text } });
  }
  if (event.__typename === "MessagePosted")
    console.log(`${event.message.author.handle}: ${event.message.text}`);
}

const { viewer, communities } = await run(VIEWER).catch(fail);
const topic = NOROSHI_TOPIC ?? communities.flatMap(({ topics }) => topics)[0].id;
console.log(`Signed in as ${viewer.handle}.`);
client.subscribe(
  { query: EVENTS, variables: { topicId: topic } },
  {
    next: ({ data, errors }) => (errors ? fail(errors) : handleEvent(data.topicEvents).catch(fail)),
    error: fail,
    complete: () => process.exit(0),
  },
);
