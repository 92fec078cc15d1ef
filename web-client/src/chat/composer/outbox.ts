/**
 * Sends the viewer's messages, in order per topic, each after its files. A message that does not reach the server is sent
 * again when the connection is back. It has the same idempotency key, so that it is posted only once. Sending continues
 * after a reload.
 */
import { createContext, useContext } from "react";
import { errorCode, failureTextKey, isRetryable, restrictedUntil } from "../../api/failure";
import { FileFailure, isReady, type MessageFile, type UnsentFile } from "../../files/composed-file";
import type { TextKey } from "../../i18n/texts";
import { createValue, type ObservableValue } from "../../ui/value";
import type { Message, Stamp } from "../operations";
import type { MessageReferences, UnsentMessage, UnsentMessageStore } from "./unsent-messages";

export interface PendingMessage extends UnsentMessage {
  state: "sending" | "waiting" | "failed";
  /** Why the message waits or has failed; null if its state says all. */
  reason: TextKey | null;
  /** Whether the message's event arrived before the server's response. Then the message is already in the timeline. */
  hasArrived: boolean;
}

/**
 * Returns whether an unsent message is for a topic. `parentId` is the id of the parent message of a thread, whose first
 * reply was written before the thread had an id; null for other topics.
 */
export function isIn(
  message: Pick<UnsentMessage, "topicId" | "replyTo">,
  topicId: string,
  parentId: string | null,
): boolean {
  return message.replyTo ? message.replyTo === parentId : message.topicId === topicId;
}

type SentListener = (message: Message, sent: UnsentMessage) => void;

export interface Outbox {
  pending: ObservableValue<readonly PendingMessage[]>;
  /** Continues with unsent messages. Returns a function that stops sending; unsent messages stay stored. */
  start(): () => void;
  send(
    topicId: string,
    text: string,
    stamp: Stamp | null,
    files?: readonly MessageFile[],
    references?: MessageReferences,
  ): void;
  retry(key: string): void;
  discard(key: string): void;
  /**
   * Hides the pending message that has the same content as the message of an event. Sending continues until the server
   * responds. `parentId` is the id of the parent message if the event is of a thread, or else null.
   */
  markArrived(message: Message, parentId: string | null): void;
  /** Calls the listener for each message that the server has accepted. */
  onSent(listener: SentListener): () => void;
}

/**
 * How long a message is sent again by itself. The server stores an idempotency key for 24 h; one hour is a margin. A
 * later repetition might post the message twice, so the user decides about it.
 */
const REPEATABLE_MS = 23 * 3_600_000;

interface OutboxDependencies {
  /** Posts a message, all files of which are ready. */
  post(message: UnsentMessage): Promise<Message>;
  /** Sends a file, and returns the id of its upload. Calls `onCreated` when the server has created the upload. */
  upload(file: UnsentFile, signal: AbortSignal, onCreated: (uploadId: string) => void): Promise<string>;
  /** Forgets the bytes of a file that is not sent any more. */
  forget(file: UnsentFile): void;
  /** Resolves when a retry after this error may succeed. */
  waitForRetry(error: unknown): Promise<void>;
  unsent: UnsentMessageStore;
  now(): number;
}

function refusalTextKey(error: unknown): TextKey {
  if (error instanceof FileFailure) return error.reason;
  return restrictedUntil(error) === null ? failureTextKey(error) : "message.muted";
}

const SENDING = { state: "sending", reason: null, hasArrived: false } as const;

export function createOutboxWith(dependencies: OutboxDependencies): Outbox {
  const { post, upload, forget, waitForRetry, unsent, now } = dependencies;
  const pending = createValue<readonly PendingMessage[]>([]);
  const sendingTopicIds = new Set<string>();
  /** Controllers that end the claims on messages, by key. */
  const claims = new Map<string, AbortController>();
  /** The topics whose messages this tab is claiming, since the last start. */
  let claimedTopicIds = new Set<string>();
  const listeners = new Set<SentListener>();
  let lifetime = new AbortController();

  const find = (key: string) => pending.get().find((entry) => entry.key === key);
  const isRepeatable = ({ writtenAt }: UnsentMessage) => now() - writtenAt < REPEATABLE_MS;
  const update = (key: string, part: Partial<PendingMessage>) =>
    pending.set(pending.get().map((entry) => (entry.key === key ? { ...entry, ...part } : entry)));
  const nextToSend = (topicId: string) =>
    pending.get().find((entry) => entry.topicId === topicId && entry.state !== "failed");

  function discard(key: string): void {
    for (const file of find(key)?.files ?? []) if (!isReady(file)) forget(file);
    unsent.remove(key);
    endClaim(key);
    pending.set(pending.get().filter((entry) => entry.key !== key));
  }

  /** Shows a message. Sends it as well, unless the user must decide about it. */
  function add(message: UnsentMessage): void {
    const reason = isRepeatable(message) ? null : "message.tooOld";
    const state = message.hasFailed || reason ? "failed" : "sending";
    const entries = [...pending.get(), { ...message, state, reason, hasArrived: false } as const];
    pending.set(entries.sort((a, b) => a.writtenAt - b.writtenAt));
    void sendPending(message.topicId);
  }

  /** Waits until no other tab holds a message, claims the message, and adds it. */
  async function claimMessage(key: string): Promise<void> {
    if (claims.has(key)) return;
    const end = new AbortController();
    claims.set(key, end);
    await unsent.claim(key, end.signal);
    const message = unsent.get(key);
    if (end.signal.aborted || find(key)) return;
    if (message) add(message);
    else endClaim(key);
  }

  function endClaim(key: string): void {
    claims.get(key)?.abort();
    claims.delete(key);
  }

  function unclaimedMessages(): UnsentMessage[] {
    return unsent
      .keys()
      .filter((key) => !claims.has(key))
      .map((key) => unsent.get(key))
      .filter((message) => message !== null)
      .sort((a, b) => a.writtenAt - b.writtenAt);
  }

  function claimUnsentMessages(): void {
    for (const { topicId } of unclaimedMessages()) void claimTopic(topicId);
  }

  /**
   * Claims the messages of a topic one after another. Of several tabs, only the tab with the first message
   * claims the second one. So the messages of a closed tab are sent in order.
   */
  async function claimTopic(topicId: string): Promise<void> {
    const [topicIds, { signal }] = [claimedTopicIds, lifetime];
    if (topicIds.has(topicId)) return;
    topicIds.add(topicId);
    const next = () => unclaimedMessages().find((message) => message.topicId === topicId);
    for (let message = next(); message && !signal.aborted; message = next()) await claimMessage(message.key);
    topicIds.delete(topicId);
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
      if (entry.files?.some((file) => !isReady(file))) await sendFiles(entry);
      // It was discarded, or belongs to another tab now.
      const complete = find(entry.key);
      if (!complete) return;
      const message = await post(complete);
      for (const listener of listeners) listener(message, complete);
      discard(entry.key);
    } catch (error) {
      if (!isRetryable(error)) return fail(entry.key, refusalTextKey(error));
      const reason = errorCode(error) === "RATE_LIMITED" ? "message.tooMany" : null;
      update(entry.key, { state: "waiting", reason, hasArrived: false });
      await waitForRetry(error);
    }
  }

  /** Sends the files of a message, one after the other. Each step is kept, so that a retry posts the same uploads. */
  async function sendFiles({ key, files = [] }: PendingMessage): Promise<void> {
    for (const file of files) {
      if (isReady(file)) continue;
      const { name, altText } = file;
      const signal = claims.get(key)?.signal ?? lifetime.signal;
      const uploadId = await upload(file, signal, (created) =>
        replaceFile(key, file.key, { ...file, uploadId: created }),
      );
      replaceFile(key, file.key, { uploadId, name, altText });
    }
  }

  function replaceFile(key: string, fileKey: string, other: MessageFile): void {
    const files = find(key)?.files ?? [];
    update(key, { files: files.map((each) => (!isReady(each) && each.key === fileKey ? other : each)) });
    keep(key);
  }

  function fail(key: string, reason: TextKey): void {
    update(key, { state: "failed", reason, hasArrived: false, hasFailed: true });
    keep(key);
  }

  function keep(key: string): void {
    const entry = find(key);
    if (!entry) return;
    const { topicId, replyTo, quoted, alsoToTopic, text, stamp, files = [], writtenAt, hasFailed } = entry;
    unsent.keep({ key, topicId, replyTo, quoted, alsoToTopic, text, stamp, files, writtenAt, hasFailed });
  }

  return {
    pending,
    start() {
      lifetime = new AbortController();
      claimedTopicIds = new Set();
      unsent.watch(claimUnsentMessages, lifetime.signal);
      claimUnsentMessages();
      return () => {
        lifetime.abort();
        for (const key of claims.keys()) endClaim(key);
        pending.set([]);
      };
    },
    send(topicId, text, stamp, files = [], references = {}) {
      const key = crypto.randomUUID();
      const message = { ...references, key, topicId, text, stamp, files, writtenAt: now(), hasFailed: false };
      unsent.keep(message);
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
    markArrived(message, parentId) {
      // The reply itself arrives in the thread.
      if (message.threadReply) return;
      const match = pending
        .get()
        .find(
          ({ quoted, text, stamp, files = [], state, hasArrived, ...entry }) =>
            !hasArrived &&
            state === "sending" &&
            isIn(entry, message.topicId, parentId) &&
            text === message.text &&
            quoted?.id === message.quote?.message?.id &&
            files.length === (message.attachments?.length ?? 0) &&
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
