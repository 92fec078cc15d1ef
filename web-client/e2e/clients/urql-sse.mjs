/** @urql/core alone: queries and mutations as JSON, subscriptions as event streams. */
import { Client, fetchExchange } from "@urql/core";
import { EventQueue, FAILING_QUERY, input, runScenario } from "./scenario.mjs";

let connection = new AbortController();

const client = new Client({
  url: `${input.url}/graphql`,
  preferGetMethod: false,
  fetchSubscriptions: true,
  fetchOptions: { headers: { authorization: `Bearer ${input.token}` } },
  fetch: (url, init) => fetch(url, { ...init, signal: AbortSignal.any([init.signal, connection.signal]) }),
  exchanges: [fetchExchange],
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

  disconnect() {
    connection.abort();
    connection = new AbortController();
  },

  errorCode: () => run(FAILING_QUERY, {}).catch((error) => error.graphQLErrors[0].extensions.code),
});
