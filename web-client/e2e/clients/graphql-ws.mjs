/** npm graphql-ws: everything over one socket. */
import { createClient } from "graphql-ws";
import { WebSocket } from "ws";
import { Inbox, order, REFUSED, runScenario } from "./story.mjs";

const client = createClient({
  url: `${order.url.replace("http", "ws")}/graphql`,
  webSocketImpl: WebSocket,
  connectionParams: { authorization: `Bearer ${order.token}` },
  retryAttempts: 0,
});

async function first(document, variables) {
  for await (const result of client.iterate({ query: document, variables })) return result;
}

await runScenario({
  run: async (document, variables) => (await first(document, variables)).data,

  listen(document, variables) {
    const inbox = new Inbox();
    const stop = client.subscribe(
      { query: document, variables },
      { next: ({ data }) => inbox.put(data.topicEvents), error: () => {}, complete: () => {} },
    );
    return { next: () => inbox.next(), stop };
  },

  cut: () => client.terminate(),

  refusal: async () => (await first(REFUSED)).errors[0].extensions.code,
});
