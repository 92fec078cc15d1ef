/**
 * Sends the viewer's messages, in order per topic. A message that does not reach the server is sent again when the
 * connection is back, with the same idempotency key, so that it is posted only once. A reload continues this.
 */
import { createContext, useContext } from "react";
import { type Api, request } from "../api/api";
import { errorCode, failureTextKey, isRetryable, restrictedUntil, retryAfterMs } from "../api/failure";
import type { TextKey } from "../i18n/texts";
import type { UserStorage } from "../session/user-storage";
import { createValue, type Value } from "../ui/value";
import { createKeptMessages, type KeptMessage, type KeptMessages } from "./kept-messages";
import { type Message, PostMessage, type Stamp } from "./operations";

export interface PendingMessage extends KeptMessage {
  state: "sending" | "waiting" | "failed";
  /** Why the message waits or has failed, if there is more to say than its state. */
  reason: TextKey | null;
  /** Whether the message's event arrived before the server's response. Then the message is already in the timeline. */
  hasArrived: boolean;
}

export interface Outbox {
  pending: Value<readonly PendingMessage[]>;
  /** Continues with kept messages. Returns a function that stops sending; unsent messages stay kept. */
  start(): () => void;
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
/** The server stores an idempotency key for 24 h. A later repetition might post the message twice, so the user decides. */
const REPEATABLE_MS = 23 * 3_600_000;

interface Transport {
  post(message: KeptMessage): Promise<Message>;
  /** Resolves when a retry after this error may succeed. */
  waitForRetry(error: unknown): Promise<void>;
  kept: KeptMessages;
  now(): number;
}

export function createOutbox(api: Api, storage: UserStorage): Outbox {
  return createOutboxWith({
    post: async ({ topicId, text, stamp, key }) => {
      const input = { topicId, text, stampId: stamp?.id ?? null, idempotencyKey: key };
      return (await request(api.direct, PostMessage, { input })).postMessage;
    },
    waitForRetry: (error) => {
      const waitMs = retryAfterMs(error);
      return waitMs === null ? waitForConnection(api) : sleep(waitMs);
    },
    kept: createKeptMessages(storage),
    now: Date.now,
  });
}

function refusalTextKey(error: unknown): TextKey {
  return restrictedUntil(error) === null ? failureTextKey(error) : "message.muted";
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

const SENDING = { state: "sending", reason: null, hasArrived: false } as const;

export function createOutboxWith({ post, waitForRetry, kept, now }: Transport): Outbox {
  const pending = createValue<readonly PendingMessage[]>([]);
  const sendingTopicIds = new Set<string>();
  /** Controllers that end the claims on messages, by key. */
  const claims = new Map<string, AbortController>();
  const listeners = new Set<(message: Message) => void>();
  let lifetime = new AbortController();

  const find = (key: string) => pending.get().find((entry) => entry.key === key);
  const isRepeatable = ({ writtenAt }: KeptMessage) => now() - writtenAt < REPEATABLE_MS;
  const update = (key: string, part: Partial<PendingMessage>) =>
    pending.set(pending.get().map((entry) => (entry.key === key ? { ...entry, ...part } : entry)));
  const nextToSend = (topicId: string) =>
    pending.get().find((entry) => entry.topicId === topicId && entry.state !== "failed");

  function discard(key: string): void {
    kept.remove(key);
    endClaim(key);
    pending.set(pending.get().filter((entry) => entry.key !== key));
  }

  /** Shows a message and sends it, unless the user must decide. */
  function add(message: KeptMessage): void {
    const reason = isRepeatable(message) ? null : "message.tooOld";
    const state = message.hasFailed || reason ? "failed" : "sending";
    const entries = [...pending.get(), { ...message, state, reason, hasArrived: false } as const];
    pending.set(entries.sort((a, b) => a.writtenAt - b.writtenAt));
    void sendPending(message.topicId);
  }

  /** Claims a message, which waits until no other tab holds it, and then adds the message. */
  async function claimMessage(key: string): Promise<void> {
    if (claims.has(key)) return;
    const end = new AbortController();
    claims.set(key, end);
    await kept.claim(key, end.signal);
    const message = kept.get(key);
    if (end.signal.aborted || find(key)) return;
    if (message) add(message);
    else endClaim(key);
  }

  function endClaim(key: string): void {
    claims.get(key)?.abort();
    claims.delete(key);
  }

  function claimKeptMessages(): void {
    for (const key of kept.keys()) void claimMessage(key);
  }

  async function sendPending(topicId: string): Promise<void> {
    if (sendingTopicIds.has(topicId)) return;
    sendingTopicIds.add(topicId);
    for (let entry = nextToSend(topicId); entry; entry = nextToSend(topicId)) await sendOnce(entry);
    sendingTopicIds.delete(topicId);
  }

  async function sendOnce(entry: PendingMessage): Promise<void> {
    if (!isRepeatable(entry)) return fail(entry.key, "message.tooOld");
    try {
      const message = await post(entry);
      for (const listener of listeners) listener(message);
      discard(entry.key);
    } catch (error) {
      if (!isRetryable(error)) return fail(entry.key, refusalTextKey(error));
      const reason = errorCode(error) === "RATE_LIMITED" ? "message.tooMany" : null;
      update(entry.key, { state: "waiting", reason, hasArrived: false });
      await waitForRetry(error);
    }
  }

  function fail(key: string, reason: TextKey): void {
    update(key, { state: "failed", reason, hasArrived: false, hasFailed: true });
    keep(key);
  }

  function keep(key: string): void {
    const entry = find(key);
    if (!entry) return;
    const { topicId, text, stamp, writtenAt, hasFailed } = entry;
    kept.keep({ key, topicId, text, stamp, writtenAt, hasFailed });
  }

  return {
    pending,
    start() {
      lifetime = new AbortController();
      kept.watch(claimKeptMessages, lifetime.signal);
      claimKeptMessages();
      return () => {
        lifetime.abort();
        for (const key of claims.keys()) endClaim(key);
        pending.set([]);
      };
    },
    send(topicId, text, stamp) {
      const message = { key: crypto.randomUUID(), topicId, text, stamp, writtenAt: now(), hasFailed: false };
      kept.keep(message);
      void claimMessage(message.key);
      add(message);
    },
    retry(key) {
      const entry = find(key);
      if (!entry) return;
      const writtenAt = isRepeatable(entry) ? entry.writtenAt : now();
      update(key, { ...SENDING, hasFailed: false, writtenAt });
      keep(key);
      void sendPending(entry.topicId);
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
