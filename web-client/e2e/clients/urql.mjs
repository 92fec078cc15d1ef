/** @urql/core: queries and mutations over HTTP, subscriptions over graphql-ws. */
import { Client, fetchExchange, subscriptionExchange } from "@urql/core";
import { createClient } from "graphql-ws";
import { WebSocket } from "ws";
import { EventQueue, FAILING_QUERY, input, runScenario } from "./scenario.mjs";

const authorization = `Bearer ${input.token}`;
const socketClient = createClient({
  url: `${input.url.replace("http", "ws")}/graphql`,
  webSocketImpl: WebSocket,
  connectionParams: { authorization },
  retryAttempts: 0,
});
const client = new Client({
  url: `${input.url}/graphql`,
  preferGetMethod: false,
  fetchOptions: { headers: { authorization } },
  exchanges: [
    fetchExchange,
    subscriptionExchange({
      forwardSubscription: (request) => ({
        subscribe: (sink) => ({
          unsubscribe: socketClient.subscribe({ ...request, query: request.query ?? "" }, sink),
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

  subscribeToTopic(document, variables) {
    const events = new EventQueue();
    const { unsubscribe } = client
      .subscription(document, variables)
      .subscribe(({ data }) => data && events.put(data.topicEvents));
    return { next: () => events.next(), stop: unsubscribe };
  },

  disconnect: () => socketClient.terminate(),

  errorCode: () => run(FAILING_QUERY, {}).catch((error) => error.graphQLErrors[0].extensions.code),
});
