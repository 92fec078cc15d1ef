/** One WebSocket for all subscriptions. After a reconnect, each subscription resumes after its last event. */
import { createClient, type ExecutionResult, type Client as Socket } from "graphql-ws";
import { isSession } from "../session/identity";
import { createValue, type ObservableValue } from "../ui/value";

export type ConnectionState = "connecting" | "open" | "broken";

export interface ServerConnection {
  state: ObservableValue<ConnectionState>;
  socket: Socket;
}

const KEEP_ALIVE_MS = 10_000;
const RETRY_WAIT_MAX_MS = 8_000;
const ANSWER_WAIT_MAX_MS = 2_000;
/** Close codes by which the server rejects a token: 4401 Unauthorized, 4403 Forbidden. */
const TOKEN_REJECTED_CODES = new Set([4401, 4403]);

/** Creates the WebSocket client. Calls `onTokenRejected` when the server rejects the token or the session. */
export function connect(token: string, onTokenRejected: () => void): ServerConnection {
  const state = createValue<ConnectionState>("connecting");
  let pongTimer: ReturnType<typeof setTimeout> | undefined;
  const socket = createClient({
    url: `${location.origin.replace(/^http/, "ws")}/graphql`,
    // The browser sends the cookie of a session with the handshake.
    connectionParams: isSession(token) ? {} : { authorization: `Bearer ${token}` },
    keepAlive: KEEP_ALIVE_MS,
    retryAttempts: Number.POSITIVE_INFINITY,
    shouldRetry: () => true,
    retryWait,
    on: {
      connected: () => state.set("open"),
      closed: (event) => {
        clearTimeout(pongTimer);
        state.set("broken");
        if (TOKEN_REJECTED_CODES.has((event as CloseEvent).code)) onTokenRejected();
      },
      // A missing pong reveals a connection that was lost without a close frame.
      ping: (wasReceived) => {
        if (!wasReceived) pongTimer = setTimeout(() => socket.terminate(), KEEP_ALIVE_MS / 2);
      },
      pong: (wasReceived) => wasReceived && clearTimeout(pongTimer),
    },
  });
  return { state, socket };
}

/** Resolves when the connection is open again, or after two seconds: the server may answer requests before that. */
export function connectionReturns({ state }: ServerConnection): Promise<void> {
  return new Promise((resolve) => {
    const stop = state.watch(() => state.get() === "open" && finish());
    const timer = setTimeout(finish, ANSWER_WAIT_MAX_MS);
    function finish() {
      clearTimeout(timer);
      stop();
      resolve();
    }
  });
}

/** Waits before a reconnect: exponential backoff with jitter. Ends early when the browser is online again. */
function retryWait(retries: number): Promise<void> {
  const wait_ms = Math.min(RETRY_WAIT_MAX_MS, 250 * 2 ** retries) * (0.5 + Math.random() / 2);
  return new Promise((resolve) => {
    const timer = setTimeout(finish, wait_ms);
    function finish() {
      clearTimeout(timer);
      removeEventListener("online", finish);
      resolve();
    }
    addEventListener("online", finish);
  });
}

/**
 * Subscribes, and resumes after the last event. graphql-ws sends the same payload object again after a reconnect.
 * Therefore each event's cursor is written to the payload's variable `since`, which the operation must declare. Returns
 * a function that ends the subscription.
 */
export function subscribeWithResume(
  socket: Socket,
  payload: { query: string; variables: Record<string, unknown> },
  sink: { next(result: ExecutionResult): void; error(error: unknown): void; complete(): void },
): () => void {
  return socket.subscribe(payload, {
    next(result) {
      const cursor = cursorOf(result.data);
      if (cursor !== undefined) payload.variables.since = cursor;
      sink.next(result as ExecutionResult);
    },
    error: (error) => sink.error(error),
    complete: () => sink.complete(),
  });
}

/** Returns the cursor of the event in a subscription's result, if the event has one. */
export function cursorOf(data: unknown): string | undefined {
  const [event] = Object.values((data ?? {}) as Record<string, { cursor?: unknown } | null>);
  return typeof event?.cursor === "string" ? event.cursor : undefined;
}
