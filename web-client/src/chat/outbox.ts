/**
 * Outgoing messages, in order per topic. A message that does not reach the server is sent again, with the same
 * idempotency key, when the connection is back. So it is posted only once.
 */
import { createContext, useContext } from "react";
import { type Api, request } from "../api/api";
import { isRetryable } from "../api/failure";
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
  arrived: boolean;
}

export interface Outbox {
  pending: Value<readonly PendingMessage[]>;
  send(topicId: string, text: string, stamp: Stamp | null): void;
  retry(key: string): void;
  discard(key: string): void;
  /**
   * Hides the pending message that matches an event with the viewer's own message. Sending continues until the server
   * responds.
   */
  markArrived(message: Message): void;
  /** Calls the listener for each message that the server has accepted. */
  onSent(listener: (message: Message) => void): () => void;
}

const WAIT_MS = 2_000;

interface Transport {
  post(entry: PendingMessage): Promise<Message>;
  /** Settles when a retry may succeed. */
  pause(): Promise<void>;
}

export function createOutbox(api: Api): Outbox {
  return createOutboxOver({
    post: async ({ topicId, text, stamp, key }) => {
      const input = { topicId, text, stampId: stamp?.id ?? null, idempotencyKey: key };
      return (await request(api.direct, PostMessage, { input })).postMessage;
    },
    pause: () => waitForConnection(api),
  });
}

function waitForConnection({ connection: { state } }: Api): Promise<void> {
  return new Promise((resolve) => {
    const stop = state.watch(() => state.get() === "open" && done());
    const timer = setTimeout(done, WAIT_MS);
    function done() {
      clearTimeout(timer);
      stop();
      resolve();
    }
  });
}

export function createOutboxOver({ post, pause }: Transport): Outbox {
  const pending = createValue<readonly PendingMessage[]>([]);
  const busy = new Set<string>();
  const listeners = new Set<(message: Message) => void>();
  const patch = (key: string, part: Partial<PendingMessage>) =>
    pending.set(pending.get().map((entry) => (entry.key === key ? { ...entry, ...part } : entry)));
  const discard = (key: string) => pending.set(pending.get().filter((entry) => entry.key !== key));
  const next = (topicId: string) =>
    pending.get().find((entry) => entry.topicId === topicId && entry.state !== "failed");

  async function run(topicId: string): Promise<void> {
    if (busy.has(topicId)) return;
    busy.add(topicId);
    for (let entry = next(topicId); entry; entry = next(topicId)) await attempt(entry);
    busy.delete(topicId);
  }

  async function attempt(entry: PendingMessage): Promise<void> {
    try {
      const message = await post(entry);
      for (const listener of listeners) listener(message);
      discard(entry.key);
    } catch (error) {
      patch(entry.key, { state: isRetryable(error) ? "waiting" : "failed", error, arrived: false });
      if (isRetryable(error)) await pause();
    }
  }

  return {
    pending,
    send(topicId, text, stamp) {
      const key = crypto.randomUUID();
      pending.set([
        ...pending.get(),
        { key, topicId, text, stamp, state: "sending", error: null, arrived: false },
      ]);
      void run(topicId);
    },
    retry(key) {
      patch(key, { state: "sending", error: null });
      for (const { topicId } of pending.get()) void run(topicId);
    },
    discard,
    markArrived(message) {
      const match = pending
        .get()
        .find(
          ({ topicId, text, stamp, state, arrived }) =>
            !arrived &&
            state === "sending" &&
            topicId === message.topicId &&
            text === message.text &&
            stamp?.id === message.stamp?.id,
        );
      if (match) patch(match.key, { arrived: true });
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
