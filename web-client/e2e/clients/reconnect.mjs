/**
 * A graphql-ws client that always reconnects. Prints a line of JSON for each connection, close and event.
 *
 * The first line of standard input is {url, tokens, topic, subscriptions}. Each connection uses the next token; the
 * last token is used repeatedly. `subscriptions` is the number of subscriptions, of which only the first prints its
 * events. The lines "pause" and "resume" stop and start reading from the socket. The process ends when its standard
 * input ends.
 */
import { createInterface } from "node:readline";
import { createClient } from "graphql-ws";
import { WebSocket } from "ws";

const TOPIC_EVENTS = `subscription TopicEvents($id: ID!, $since: Cursor) {
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

function report(line) {
  console.log(JSON.stringify(line));
}

function subscribe(isReported) {
  // After a reconnect, graphql-ws sends this object again, so the subscription resumes after the last cursor.
  const variables = { id: topic };
  client.subscribe(
    { query: TOPIC_EVENTS, variables },
    {
      next: ({ data: { topicEvents: event } }) => {
        variables.since = event.cursor;
        if (isReported)
          report({ event: event.__typename, resumed: event.resumed, text: event.message?.text.slice(0, 40) });
      },
      error: (error) => report({ error: String(error) }),
      complete: () => report({ completed: true }),
    },
  );
}

for (let n = 0; n < subscriptions; n++) subscribe(n === 0);
for await (const line of lines) {
  if (line === "pause") socket.pause();
  if (line === "resume") socket.resume();
}
process.exit(0);
