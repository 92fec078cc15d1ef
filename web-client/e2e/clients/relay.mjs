/** Relay's network layer: queries and mutations over HTTP, subscriptions over graphql-ws. */
import { createClient } from "graphql-ws";
import relay from "relay-runtime";
import { WebSocket } from "ws";
import { Inbox, order, REFUSED, runScenario } from "./story.mjs";

const { Network, Observable } = relay;
const authorization = `Bearer ${order.token}`;
const sockets = createClient({
  url: `${order.url.replace("http", "ws")}/graphql`,
  webSocketImpl: WebSocket,
  connectionParams: { authorization },
  retryAttempts: 0,
});

async function ask({ text }, variables) {
  const response = await fetch(`${order.url}/graphql`, {
    method: "POST",
    headers: { authorization, "content-type": "application/json" },
    body: JSON.stringify({ query: text, variables }),
  });
  return response.json();
}

// The scenario terminates its socket on purpose.
Observable.onUnhandledError(() => {});

function subscribe({ text }, variables) {
  return Observable.create((sink) => sockets.subscribe({ query: text, variables }, sink));
}

const network = Network.create(ask, subscribe);

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

  listen(document, variables) {
    const inbox = new Inbox();
    const { unsubscribe } = execute(document, variables).subscribe({
      next: ({ data }) => inbox.put(data.topicEvents),
      error: () => {},
    });
    return { next: () => inbox.next(), stop: unsubscribe };
  },

  cut: () => sockets.terminate(),

  refusal: async () => (await execute(REFUSED, {}).toPromise()).errors[0].extensions.code,
});
