/**
 * A graphql-ws client whose subscriptions lose no event when the connection is lost. urql, Apollo Client and Relay use
 * it like any other graphql-ws client.
 *
 * After a reconnect, graphql-ws sends the same payload object again. The cursor of each event is therefore written
 * into the variable `since` of a payload, which the subscription declares and passes on.
 */
import { createClient } from "graphql-ws";

/** Creates the client from options of graphql-ws. `subscribe` resumes; `iterate` does not. */
export function createResumingClient(options) {
  const { keepAlive = 10_000 } = options;
  const client = createClient({
    keepAlive,
    retryAttempts: Number.POSITIVE_INFINITY,
    // Without this, graphql-ws gives up when a reconnect is refused, for example while the server restarts.
    shouldRetry: () => true,
    retryWait: (retries) => {
      const wait_ms = Math.min(500 * 2 ** retries, 30_000) * (0.5 + Math.random() / 2);
      return new Promise((resolve) => setTimeout(resolve, wait_ms));
    },
    ...options,
  });
  // A missing pong reveals a connection that was lost without being closed.
  let pongTimer;
  client.on("ping", (isReceived) => {
    if (!isReceived) pongTimer = setTimeout(() => client.terminate(), keepAlive / 2);
  });
  client.on("pong", (isReceived) => isReceived && clearTimeout(pongTimer));
  client.on("closed", () => clearTimeout(pongTimer));
  function subscribe(payload, sink) {
    const variables = { ...payload.variables };
    function next(result) {
      const [event] = Object.values(result.data ?? {});
      if (event?.cursor) variables.since = event.cursor;
      sink.next(result);
    }
    const error = (reason) => sink.error(reason);
    return client.subscribe({ ...payload, variables }, { next, error, complete: () => sink.complete() });
  }
  return { ...client, subscribe };
}
