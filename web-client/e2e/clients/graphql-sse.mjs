/** graphql-sse: every operation is an event stream. A new stream resumes by the header Last-Event-ID. */
import { createClient } from "graphql-sse";
import { EventQueue, FAILING_QUERY, input, runScenario } from "./scenario.mjs";

let connection = new AbortController();
let lastCursor;

const client = createClient({
  url: `${input.url}/graphql`,
  headers: () => ({
    authorization: `Bearer ${input.token}`,
    ...(lastCursor && { "last-event-id": lastCursor }),
  }),
  fetchFn: (url, init) => fetch(url, { ...init, signal: AbortSignal.any([init.signal, connection.signal]) }),
  retryAttempts: 0,
});

async function firstResult(query, variables) {
  for await (const result of client.iterate({ query, variables })) return result;
}

await runScenario({
  run: async (document, variables) => (await firstResult(document, variables)).data,

  subscribeToTopic(query, { id }) {
    const events = new EventQueue();
    const next = ({ data }) => {
      lastCursor = data.topicEvents.cursor;
      events.put(data.topicEvents);
    };
    const stop = client.subscribe(
      { query, variables: { id } },
      { next, error: () => {}, complete: () => {} },
    );
    return { next: () => events.next(), stop };
  },

  disconnect() {
    connection.abort();
    connection = new AbortController();
  },

  errorCode: async () => (await firstResult(FAILING_QUERY)).errors[0].extensions.code,
});
