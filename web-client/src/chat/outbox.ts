/**
 * Sends the viewer's messages, in order per topic. A message that does not reach the server is sent again when the
 * connection is back, with the same idempotency key, so that it is posted only once.
 */
import { createContext, useContext } from "react";
import { type Api, request } from "../api/api";
import { isRetryable, retryAfterMs } from "../api/failure";
import { createValue, type Value } from "../ui/value";
import { type Message, PostMessage, type Stamp } from "./operations";

export interface PendingMessage {
  key: string;
  topicId: string;
  text: string;
  stamp: Stamp | null;
  state: "sending" | "waiting" | "failed";
  error: unknown;
  /** Whether the message's event arrived before the server's response. Then the message is already in the timeline. */
  hasArrived: boolean;
}

export interface Outbox {
  pending: Value<readonly PendingMessage[]>;
  send(topicId: string, text: string, stamp: Stamp | null): void;
  retry(key: string): void;
  discard(key: string): void;
  /**
   * Hides the pending message that has the same content as the message of an event. Sending continues until the server
   * responds.
   */
  markArrived(message: Message): void;
  /** Calls the listener for each message that the server has accepted. */
  onSent(listener: (message: Message) => void): () => void;
}

const RETRY_WAIT_MAX_MS = 2_000;

interface Transport {
  post(entry: PendingMessage): Promise<Message>;
  /** Resolves when a retry after this error may succeed. */
  waitForRetry(error: unknown): Promise<void>;
}

export function createOutbox(api: Api): Outbox {
  return createOutboxWith({
    post: async ({ topicId, text, stamp, key }) => {
      const input = { topicId, text, stampId: stamp?.id ?? null, idempotencyKey: key };
      return (await request(api.direct, PostMessage, { input })).postMessage;
    },
    waitForRetry: (error) => {
      const waitMs = retryAfterMs(error);
      return waitMs === null ? waitForConnection(api) : sleep(waitMs);
    },
  });
}

function sleep(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

function waitForConnection({ connection: { state } }: Api): Promise<void> {
  return new Promise((resolve) => {
    const stop = state.watch(() => state.get() === "open" && finish());
    const timer = setTimeout(finish, RETRY_WAIT_MAX_MS);
    function finish() {
      clearTimeout(timer);
      stop();
      resolve();
    }
  });
}

export function createOutboxWith({ post, waitForRetry }: Transport): Outbox {
  const pending = createValue<readonly PendingMessage[]>([]);
  const sendingTopicIds = new Set<string>();
  const listeners = new Set<(message: Message) => void>();
  const update = (key: string, part: Partial<PendingMessage>) =>
    pending.set(pending.get().map((entry) => (entry.key === key ? { ...entry, ...part } : entry)));
  const discard = (key: string) => pending.set(pending.get().filter((entry) => entry.key !== key));
  const nextToSend = (topicId: string) =>
    pending.get().find((entry) => entry.topicId === topicId && entry.state !== "failed");

  async function sendPending(topicId: string): Promise<void> {
    if (sendingTopicIds.has(topicId)) return;
    sendingTopicIds.add(topicId);
    for (let entry = nextToSend(topicId); entry; entry = nextToSend(topicId)) await sendOnce(entry);
    sendingTopicIds.delete(topicId);
  }

  async function sendOnce(entry: PendingMessage): Promise<void> {
    try {
      const message = await post(entry);
      for (const listener of listeners) listener(message);
      discard(entry.key);
    } catch (error) {
      update(entry.key, { state: isRetryable(error) ? "waiting" : "failed", error, hasArrived: false });
      if (isRetryable(error)) await waitForRetry(error);
    }
  }

  return {
    pending,
    send(topicId, text, stamp) {
      const key = crypto.randomUUID();
      pending.set([
        ...pending.get(),
        { key, topicId, text, stamp, state: "sending", error: null, hasArrived: false },
      ]);
      void sendPending(topicId);
    },
    retry(key) {
      update(key, { state: "sending", error: null });
      for (const { topicId } of pending.get()) void sendPending(topicId);
    },
    discard,
    markArrived(message) {
      const match = pending
        .get()
        .find(
          ({ topicId, text, stamp, state, hasArrived }) =>
            !hasArrived &&
            state === "sending" &&
            topicId === message.topicId &&
            text === message.text &&
            stamp?.id === message.stamp?.id,
        );
      if (match) update(match.key, { hasArrived: true });
    },
    onSent(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
  };
}

const OutboxContext = createContext<Outbox | null>(null);
export const OutboxProvider = OutboxContext.Provider;

export function useOutbox(): Outbox {
  const outbox = useContext(OutboxContext);
  if (outbox === null) throw new Error("There is no OutboxProvider above this component.");
  return outbox;
}
