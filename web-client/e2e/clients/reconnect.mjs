/**
 * A graphql-ws client that always reconnects, and reports each event as one line of JSON.
 *
 * Standard input: first {url, tokens, topic, subscriptions}. Each connection takes the next token and keeps the last
 * one. Then "pause" and "resume", which stop and start reading. The process ends when its standard input ends.
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
      report({ connected: true });
    },
    closed: ({ code }) => report({ closed: code }),
  },
});

function report(what) {
  console.log(JSON.stringify(what));
}

function listen(reported) {
  // graphql-ws sends this object again after each reconnect, so the subscription resumes from the last cursor.
  const variables = { id: topic };
  client.subscribe(
    { query: LISTEN, variables },
    {
      next: ({ data: { topicEvents: event } }) => {
        variables.since = event.cursor;
        if (reported)
          report({ event: event.__typename, resumed: event.resumed, text: event.message?.text.slice(0, 40) });
      },
      error: (error) => report({ error: String(error) }),
      complete: () => report({ completed: true }),
    },
  );
}

for (let n = 0; n < subscriptions; n++) listen(n === 0);
for await (const line of lines) {
  if (line === "pause") socket.pause();
  if (line === "resume") socket.resume();
}
process.exit(0);
