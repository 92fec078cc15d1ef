import { expect, test } from "vitest";
import { failureTextKey, retryAfterMs } from "../api/failure";
import type { KeptMessage, KeptMessages } from "./kept-messages";
import type { Message } from "./operations";
import { createOutboxWith, type PendingMessage } from "./outbox";

const runPendingTasks = () => new Promise((resolve) => setTimeout(resolve, 0));
const messageOf = (entry: KeptMessage) =>
  ({ id: entry.key, topicId: entry.topicId, text: entry.text, stamp: null }) as Message;
const networkError = { networkError: new Error("cut") };
const HOUR_MS = 3_600_000;

/** Messages in the storage of one browser. A key that is in `claimedElsewhere` belongs to another tab. */
function browserWith(claimedElsewhere = new Map<string, Promise<void>>()): KeptMessages {
  const messages = new Map<string, KeptMessage>();
  return {
    keep: (message) => void messages.set(message.key, message),
    get: (key) => messages.get(key) ?? null,
    remove: (key) => void messages.delete(key),
    keys: () => [...messages.keys()],
    watch: () => {},
    claim: async (key) => claimedElsewhere.get(key),
  };
}

const keptMessage = (part: Partial<KeptMessage>): KeptMessage => ({
  key: "k",
  topicId: "t",
  text: "one",
  stamp: null,
  writtenAt: Date.now(),
  hasFailed: false,
  ...part,
});

const outboxDefaults = () => ({ waitForRetry: () => new Promise<void>(() => {}), now: Date.now });

test("an undelivered message is sent again with the same key, in order", async () => {
  const attempts: string[] = [];
  const keys = new Set<string>();
  let isOffline = true;
  let endPause = () => {};
  const outbox = createOutboxWith({
    post: async (entry) => {
      attempts.push(entry.text);
      keys.add(entry.key);
      if (isOffline) throw { networkError: new Error("cut") };
      return messageOf(entry);
    },
    waitForRetry: () =>
      new Promise((resolve) => {
        endPause = resolve;
      }),
    kept: browserWith(),
    now: Date.now,
  });
  outbox.send("t", "one", null);
  outbox.send("t", "two", null);
  await runPendingTasks();
  expect(outbox.pending.get().map(({ state }) => state)).toEqual(["waiting", "sending"]);
  isOffline = false;
  endPause();
  await runPendingTasks();
  expect(attempts).toEqual(["one", "one", "two"]);
  expect(keys.size).toBe(2);
  expect(outbox.pending.get()).toEqual([]);
});

test("a rejected message stays, does not block the next, and can be retried", async () => {
  let isForbidden = true;
  const outbox = createOutboxWith({
    post: async (entry) => {
      if (isForbidden && entry.text === "bad")
        throw { graphQLErrors: [{ extensions: { code: "FORBIDDEN" } }] };
      return messageOf(entry);
    },
    waitForRetry: async () => {},
    kept: browserWith(),
    now: Date.now,
  });
  outbox.send("t", "bad", null);
  outbox.send("t", "good", null);
  await runPendingTasks();
  expect(outbox.pending.get().map(({ text, state }) => [text, state])).toEqual([["bad", "failed"]]);
  isForbidden = false;
  outbox.retry(outbox.pending.get()[0]?.key ?? "");
  await runPendingTasks();
  expect(outbox.pending.get()).toEqual([]);
});

test("an event before the answer hides the pending message until the answer or a failure", async () => {
  let failPost = (_: unknown) => {};
  const outbox = createOutboxWith({
    post: () =>
      new Promise((_, reject) => {
        failPost = reject;
      }),
    ...outboxDefaults(),
    kept: browserWith(),
  });
  outbox.send("t", "one", null);
  const [entry] = outbox.pending.get() as [PendingMessage];
  outbox.markArrived(messageOf(entry));
  expect(outbox.pending.get()[0]?.hasArrived).toBe(true);
  failPost({ networkError: new Error("cut") });
  await runPendingTasks();
  expect(outbox.pending.get()[0]).toMatchObject({ hasArrived: false, state: "waiting" });
});

test("a reload sends what was not sent, once, with the same key and in order", async () => {
  const kept = browserWith();
  const beforeReload = createOutboxWith({
    ...outboxDefaults(),
    kept,
    post: () => Promise.reject(networkError),
  });
  const stop = beforeReload.start();
  beforeReload.send("t", "one", null);
  beforeReload.send("t", "two", null);
  await runPendingTasks();
  const keys = beforeReload.pending.get().map(({ key }) => key);
  stop();
  const sentKeys: string[] = [];
  const post = async (message: KeptMessage) => {
    sentKeys.push(message.key);
    return messageOf(message);
  };
  createOutboxWith({ ...outboxDefaults(), kept, post }).start();
  await runPendingTasks();
  expect(sentKeys).toEqual(keys);
  expect(kept.keys()).toEqual([]);
});

test("a message of another tab is neither shown nor sent until that tab is gone", async () => {
  let closeOtherTab = () => {};
  const otherTab = new Promise<void>((resolve) => {
    closeOtherTab = resolve;
  });
  const kept = browserWith(new Map([["k", otherTab]]));
  kept.keep(keptMessage({}));
  const sent: string[] = [];
  const post = async (message: KeptMessage) => {
    sent.push(message.text);
    return messageOf(message);
  };
  const outbox = createOutboxWith({ ...outboxDefaults(), kept, post });
  outbox.start();
  await runPendingTasks();
  expect([outbox.pending.get(), sent]).toEqual([[], []]);
  closeOtherTab();
  await runPendingTasks();
  expect(sent).toEqual(["one"]);
});

test("a message that is older than its idempotency key is shown as unsent, and sent when the user says so", async () => {
  const kept = browserWith();
  kept.keep(keptMessage({ writtenAt: Date.now() - 30 * HOUR_MS }));
  kept.keep(keptMessage({ key: "refused", text: "two", hasFailed: true }));
  const sent: string[] = [];
  const post = async (message: KeptMessage) => {
    sent.push(message.text);
    return messageOf(message);
  };
  const outbox = createOutboxWith({ ...outboxDefaults(), kept, post });
  outbox.start();
  await runPendingTasks();
  const shown = outbox.pending.get().map(({ text, state, reason }) => [text, state, reason]);
  expect(shown).toEqual([
    ["one", "failed", "message.tooOld"],
    ["two", "failed", null],
  ]);
  expect(sent).toEqual([]);
  outbox.retry("k");
  await runPendingTasks();
  expect(sent).toEqual(["one"]);
});

test("a message that waits until its idempotency key ends is not repeated", async () => {
  let time = Date.now();
  let attempts = 0;
  const outbox = createOutboxWith({
    kept: browserWith(),
    now: () => time,
    waitForRetry: async () => {
      time += 30 * HOUR_MS;
    },
    post: () => {
      attempts += 1;
      return Promise.reject(networkError);
    },
  });
  outbox.send("t", "one", null);
  await runPendingTasks();
  expect(attempts).toBe(1);
  expect(outbox.pending.get()[0]).toMatchObject({ state: "failed", reason: "message.tooOld" });
});

test("after a sign-out nothing is sent or kept any more", async () => {
  const kept = browserWith();
  let failPost = (_: unknown) => {};
  const outbox = createOutboxWith({
    ...outboxDefaults(),
    kept,
    post: () =>
      new Promise((_, reject) => {
        failPost = reject;
      }),
  });
  const stop = outbox.start();
  outbox.send("t", "one", null);
  stop();
  kept.remove(kept.keys()[0] ?? "");
  failPost({ graphQLErrors: [{ extensions: { code: "FORBIDDEN" } }] });
  await runPendingTasks();
  expect([kept.keys(), outbox.pending.get()]).toEqual([[], []]);
});

test("a message above a limit waits for as long as the server asks", async () => {
  const refusal = { graphQLErrors: [{ extensions: { code: "RATE_LIMITED", retryAfterMs: 7 } }] };
  const waits: (number | null)[] = [];
  let isRefused = true;
  const outbox = createOutboxWith({
    post: async (entry) => {
      if (isRefused) throw refusal;
      return messageOf(entry);
    },
    waitForRetry: async (error) => {
      waits.push(retryAfterMs(error));
      expect(outbox.pending.get()[0]).toMatchObject({ state: "waiting", reason: "message.tooMany" });
      isRefused = false;
    },
    kept: browserWith(),
    now: Date.now,
  });
  outbox.send("t", "one", null);
  await runPendingTasks();
  expect(waits).toEqual([7]);
  expect(outbox.pending.get()).toEqual([]);
  expect(failureTextKey(refusal)).toBe("failure.tooMany");
});
