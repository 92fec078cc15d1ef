/** graphql-ws: queries, mutations and subscriptions over one socket. */
import { createClient } from "graphql-ws";
import { WebSocket } from "ws";
import { EventQueue, FAILING_QUERY, input, runScenario } from "./scenario.mjs";

const client = createClient({
  url: `${input.url.replace("http", "ws")}/graphql`,
  webSocketImpl: WebSocket,
  connectionParams: { authorization: `Bearer ${input.token}` },
  retryAttempts: 0,
});

async function firstResult(document, variables) {
  for await (const result of client.iterate({ query: document, variables })) return result;
}

await runScenario({
  run: async (document, variables) => (await firstResult(document, variables)).data,

  subscribeToTopic(document, variables) {
    const events = new EventQueue();
    const stop = client.subscribe(
      { query: document, variables },
      { next: ({ data }) => events.put(data.topicEvents), error: () => {}, complete: () => {} },
    );
    return { next: () => events.next(), stop };
  },

  disconnect: () => client.terminate(),

  errorCode: async () => (await firstResult(FAILING_QUERY)).errors[0].extensions.code,
});
