/**
 * Prints the messages of a topic as they arrive, with Relay. Node.js has no step that replaces `graphql` tags by the
 * files of relay-compiler, so these files are imported.
 *
 *     npx relay-compiler && NOROSHI_TOKEN=... node live.mjs [text to post]
 */
import relay from "relay-runtime";
import { WebSocket } from "ws";
import EVENTS from "./__generated__/operationsEventsSubscription.graphql.js";
import POST from "./__generated__/operationsPostMutation.graphql.js";
import VIEWER from "./__generated__/operationsViewerQuery.graphql.js";
import { createEnvironment } from "./environment.mjs";

const { commitMutation, fetchQuery, requestSubscription } = relay;
const { NOROSHI_URL = "http://127.0.0.1:8000", NOROSHI_TOKEN, NOROSHI_TOPIC } = process.env;
const environment = createEnvironment(NOROSHI_URL, `Bearer ${NOROSHI_TOKEN}`, { webSocketImpl: WebSocket });

function fail(error) {
  // GraphQL errors of a subscription, or the errors of an answer, or a failure of the network.
  const [{ message, extensions }] = Array.isArray(error) ? error : (error.source?.errors ?? [error]);
  console.error(`${extensions?.code}: ${message}`);
  process.exit(1);
}

function handleEvent(event) {
  if (event.__typename === "StreamReady") {
    console.log(event.resumed ? "Resumed." : "Live.");
    const text = process.argv[2];
    const variables = { input: { topicId: topic, text } };
    if (text && !event.resumed) commitMutation(environment, { mutation: POST, variables, onError: fail });
  }
  if (event.__typename === "MessagePosted")
    console.log(`${event.message.author.handle}: ${event.message.text}`);
}

const { viewer, communities } = await fetchQuery(environment, VIEWER, {}).toPromise().catch(fail);
const topic = NOROSHI_TOPIC ?? communities.flatMap(({ topics }) => topics)[0].id;
console.log(`Signed in as ${viewer.handle}.`);
requestSubscription(environment, {
  subscription: EVENTS,
  variables: { topicId: topic },
  onNext: (data) => handleEvent(data.topicEvents),
  onError: fail,
});
