/**
 * A graphql-ws client that stays connected whatever happens, and tells what happens, one line of JSON each.
 *
 * Standard input: first {url, tokens, topic, subscriptions}, where each connection takes the next token, and the last
 * one is taken for ever; then "pause" and "resume", which stop and start reading. It ends with its standard input.
 */
import { createInterface } from "node:readline";
import { createClient } from "graphql-ws";
import { WebSocket } from "ws";

const LISTEN = `subscription Listen($id: ID!, $since: Cursor) {
  topicEvents(topicId: $id, since: $since) {
    __typename
    ... on Event { cursor }
    ... on StreamReady { resumed }
    ... on MessagePosted { message { text } }
  }
}`;

const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]();
const { url, tokens, topic, subscriptions } = JSON.parse((await lines.next()).value);

let socket;
const client = createClient({
  url: `${url.replace("http", "ws")}/graphql`,
  webSocketImpl: WebSocket,
  connectionParams: () => ({ authorization: `Bearer ${tokens.length > 1 ? tokens.shift() : tokens[0]}` }),
  retryAttempts: Number.POSITIVE_INFINITY,
  retryWait: () => new Promise((resolve) => setTimeout(resolve, 100)),
  on: {
    connected: (connected) => {
      socket = connected;
      tell({ connected: true });
    },
    closed: ({ code }) => tell({ closed: code }),
  },
});

function tell(what) {
  console.log(JSON.stringify(what));
}

function listen(told) {
  // graphql-ws sends this very object again after each reconnect: it goes on where it was.
  const variables = { id: topic };
  client.subscribe(
    { query: LISTEN, variables },
    {
      next: ({ data: { topicEvents: event } }) => {
        variables.since = event.cursor;
        if (told)
          tell({ event: event.__typename, resumed: event.resumed, text: event.message?.text.slice(0, 40) });
      },
      error: (error) => tell({ error: String(error) }),
      complete: () => tell({ completed: true }),
    },
  );
}

for (let n = 0; n < subscriptions; n++) listen(n === 0);
for await (const line of lines) {
  if (line === "pause") socket.pause();
  if (line === "resume") socket.resume();
}
process.exit(0);
