/** @urql/core: queries and mutations over HTTP, subscriptions over graphql-ws. */
import { Client, fetchExchange, subscriptionExchange } from "@urql/core";
import { createClient } from "graphql-ws";
import { WebSocket } from "ws";
import { Inbox, order, REFUSED, runScenario } from "./story.mjs";

const authorization = `Bearer ${order.token}`;
const sockets = createClient({
  url: `${order.url.replace("http", "ws")}/graphql`,
  webSocketImpl: WebSocket,
  connectionParams: { authorization },
  retryAttempts: 0,
});
const client = new Client({
  url: `${order.url}/graphql`,
  preferGetMethod: false,
  fetchOptions: { headers: { authorization } },
  exchanges: [
    fetchExchange,
    subscriptionExchange({
      forwardSubscription: (request) => ({
        subscribe: (sink) => ({
          unsubscribe: sockets.subscribe({ ...request, query: request.query ?? "" }, sink),
        }),
      }),
    }),
  ],
});

async function run(document, variables) {
  const send = document.startsWith("mutation") ? client.mutation : client.query;
  const { data, error } = await send.call(client, document, variables).toPromise();
  if (error) throw error;
  return data;
}

await runScenario({
  run,

  listen(document, variables) {
    const inbox = new Inbox();
    const { unsubscribe } = client
      .subscription(document, variables)
      .subscribe(({ data }) => data && inbox.put(data.topicEvents));
    return { next: () => inbox.next(), stop: unsubscribe };
  },

  cut: () => sockets.terminate(),

  refusal: () => run(REFUSED, {}).catch((error) => error.graphQLErrors[0].extensions.code),
});
