/** Relay's network layer: queries and mutations over HTTP, subscriptions over graphql-ws. */
import { createClient } from "graphql-ws";
import relay from "relay-runtime";
import { WebSocket } from "ws";
import { EventQueue, FAILING_QUERY, input, runScenario } from "./scenario.mjs";

const { Network, Observable } = relay;
const authorization = `Bearer ${input.token}`;
const socketClient = createClient({
  url: `${input.url.replace("http", "ws")}/graphql`,
  webSocketImpl: WebSocket,
  connectionParams: { authorization },
  retryAttempts: 0,
});

async function sendOverHttp({ text }, variables) {
  const response = await fetch(`${input.url}/graphql`, {
    method: "POST",
    headers: { authorization, "content-type": "application/json" },
    body: JSON.stringify({ query: text, variables }),
  });
  return response.json();
}

// The scenario terminates its socket on purpose, which Relay would report as an unhandled error.
Observable.onUnhandledError(() => {});

function subscribe({ text }, variables) {
  return Observable.create((sink) => socketClient.subscribe({ query: text, variables }, sink));
}

const network = Network.create(sendOverHttp, subscribe);

function execute(document, variables) {
  const [, operationKind, name] = /^(\w+) (\w+)/.exec(document);
  return network.execute(
    { id: null, text: document, name, operationKind, metadata: {} },
    variables,
    {},
    null,
  );
}

await runScenario({
  run: async (document, variables) => (await execute(document, variables).toPromise()).data,

  subscribeToTopic(document, variables) {
    const events = new EventQueue();
    const { unsubscribe } = execute(document, variables).subscribe({
      next: ({ data }) => events.put(data.topicEvents),
      error: () => {},
    });
    return { next: () => events.next(), stop: unsubscribe };
  },

  disconnect: () => socketClient.terminate(),

  errorCode: async () => (await execute(FAILING_QUERY, {}).toPromise()).errors[0].extensions.code,
});
