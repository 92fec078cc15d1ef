import { expect, test } from "vitest";
import { failureTextKey, retryAfterMs } from "../../api/failure";
import { FileFailure } from "../../files/composed-file";
import type { Message } from "../operations";
import { createOutboxWith, type PendingMessage } from "./outbox";
import type { UnsentMessage, UnsentMessageStore } from "./unsent-messages";

const runPendingTasks = () => new Promise((resolve) => setTimeout(resolve, 0));
const messageOf = (entry: UnsentMessage) =>
  ({ id: entry.key, topicId: entry.topicId, text: entry.text, stamp: null }) as Message;
const networkError = { networkError: new Error("cut") };
const HOUR_MS = 3_600_000;

/**
 * Returns the messages in the storage of one browser. A message whose key is in `claimedElsewhere` belongs to another
 * tab until the promise resolves.
 */
function browserWith(claimedElsewhere = new Map<string, Promise<void>>()): UnsentMessageStore {
  const messages = new Map<string, UnsentMessage>();
  return {
    keep: (message) => void messages.set(message.key, message),
    get: (key) => messages.get(key) ?? null,
    remove: (key) => void messages.delete(key),
    keys: () => [...messages.keys()],
    watch: () => {},
    claim: async (key) => claimedElsewhere.get(key),
  };
}

const sleep = (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms));

/** Returns a function that creates the `claim` of a tab. After its first request, each request arrives late. */
function createLocks() {
  const holders = new Map<string, Promise<void>>();
  return (delay_ms: number): UnsentMessageStore["claim"] => {
    let requests = 0;
    return async (key, signal) => {
      if (requests++ > 0) await sleep(delay_ms);
      const before = holders.get(key);
      holders.set(key, new Promise((release) => signal.addEventListener("abort", () => release())));
      await before;
    };
  };
}

const unsentMessage = (part: Partial<UnsentMessage>): UnsentMessage => ({
  key: "k",
  topicId: "t",
  text: "one",
  stamp: null,
  writtenAt: Date.now(),
  hasFailed: false,
  ...part,
});

const noFiles = { upload: () => Promise.reject(new Error("no files")), forget: () => {} };
const outboxDefaults = () => ({ waitForRetry: () => new Promise<void>(() => {}), now: Date.now, ...noFiles });

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
    unsent: browserWith(),
    now: Date.now,
    ...noFiles,
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
    unsent: browserWith(),
    now: Date.now,
    ...noFiles,
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
    unsent: browserWith(),
  });
  outbox.send("t", "one", null);
  const [entry] = outbox.pending.get() as [PendingMessage];
  outbox.markArrived(messageOf(entry), null);
  expect(outbox.pending.get()[0]?.hasArrived).toBe(true);
  failPost({ networkError: new Error("cut") });
  await runPendingTasks();
  expect(outbox.pending.get()[0]).toMatchObject({ hasArrived: false, state: "waiting" });
});

test("an event in the thread of the parent message hides a first reply", async () => {
  const outbox = createOutboxWith({
    ...outboxDefaults(),
    post: () => new Promise(() => {}),
    unsent: browserWith(),
  });
  outbox.send("t", "one", null, [], { replyTo: "parent" });
  const [entry] = outbox.pending.get() as [PendingMessage];
  outbox.markArrived(messageOf(entry), null);
  outbox.markArrived({ ...messageOf(entry), topicId: "thread" }, "another");
  expect(outbox.pending.get()[0]?.hasArrived).toBe(false);
  outbox.markArrived({ ...messageOf(entry), topicId: "thread" }, "parent");
  expect(outbox.pending.get()[0]?.hasArrived).toBe(true);
});

test("a refused reply is still sent to the topic after a reload, and its copy there hides nothing", async () => {
  const unsent = browserWith();
  const refused = createOutboxWith({
    ...outboxDefaults(),
    unsent,
    post: () => Promise.reject({ graphQLErrors: [{ extensions: { code: "FORBIDDEN" } }] }),
  });
  const stop = refused.start();
  refused.send("t", "one", null, [], { replyTo: "parent", alsoToTopic: true });
  await runPendingTasks();
  stop();
  const posted: (boolean | undefined)[] = [];
  const outbox = createOutboxWith({
    ...outboxDefaults(),
    unsent,
    post: (message) => {
      posted.push(message.alsoToTopic);
      return new Promise(() => {});
    },
  });
  outbox.start();
  await runPendingTasks();
  const [entry] = outbox.pending.get() as [PendingMessage];
  outbox.retry(entry.key);
  const crossPost = { ...messageOf(entry), threadReply: { threadId: "thread" } } as Message;
  outbox.markArrived({ ...crossPost, topicId: "thread" }, "parent");
  expect(posted).toEqual([true]);
  expect(outbox.pending.get()[0]?.hasArrived).toBe(false);
});

test("a reload sends what was not sent, once, with the same key and in order", async () => {
  const unsent = browserWith();
  const beforeReload = createOutboxWith({
    ...outboxDefaults(),
    unsent,
    post: () => Promise.reject(networkError),
  });
  const stop = beforeReload.start();
  beforeReload.send("t", "one", null);
  beforeReload.send("t", "two", null);
  await runPendingTasks();
  const keys = beforeReload.pending.get().map(({ key }) => key);
  stop();
  const sentKeys: string[] = [];
  const post = async (message: UnsentMessage) => {
    sentKeys.push(message.key);
    return messageOf(message);
  };
  createOutboxWith({ ...outboxDefaults(), unsent, post }).start();
  await runPendingTasks();
  expect(sentKeys).toEqual(keys);
  expect(unsent.keys()).toEqual([]);
});

test("a message of another tab is neither shown nor sent until that tab is gone", async () => {
  let closeOtherTab = () => {};
  const otherTab = new Promise<void>((resolve) => {
    closeOtherTab = resolve;
  });
  const unsent = browserWith(new Map([["k", otherTab]]));
  unsent.keep(unsentMessage({}));
  const sent: string[] = [];
  const post = async (message: UnsentMessage) => {
    sent.push(message.text);
    return messageOf(message);
  };
  const outbox = createOutboxWith({ ...outboxDefaults(), unsent, post });
  outbox.start();
  await runPendingTasks();
  expect([outbox.pending.get(), sent]).toEqual([[], []]);
  closeOtherTab();
  await runPendingTasks();
  expect(sent).toEqual(["one"]);
});

test("a message whose idempotency key may have expired is shown as failed, and sent on a retry", async () => {
  const unsent = browserWith();
  unsent.keep(unsentMessage({ writtenAt: Date.now() - 30 * HOUR_MS }));
  unsent.keep(unsentMessage({ key: "refused", text: "two", hasFailed: true }));
  const sent: string[] = [];
  const post = async (message: UnsentMessage) => {
    sent.push(message.text);
    return messageOf(message);
  };
  const outbox = createOutboxWith({ ...outboxDefaults(), unsent, post });
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

test("a message that waits until its idempotency key may have expired is not sent again", async () => {
  let time = Date.now();
  let attempts = 0;
  const outbox = createOutboxWith({
    ...noFiles,
    unsent: browserWith(),
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

test("a message that fails after the outbox has stopped is neither shown nor kept again", async () => {
  const unsent = browserWith();
  let failPost = (_: unknown) => {};
  const outbox = createOutboxWith({
    ...outboxDefaults(),
    unsent,
    post: () =>
      new Promise((_, reject) => {
        failPost = reject;
      }),
  });
  const stop = outbox.start();
  outbox.send("t", "one", null);
  stop();
  unsent.remove(unsent.keys()[0] ?? "");
  failPost({ graphQLErrors: [{ extensions: { code: "FORBIDDEN" } }] });
  await runPendingTasks();
  expect([unsent.keys(), outbox.pending.get()]).toEqual([[], []]);
});

test("a message above a rate limit waits for as long as the server asks", async () => {
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
    unsent: browserWith(),
    now: Date.now,
    ...noFiles,
  });
  outbox.send("t", "one", null);
  await runPendingTasks();
  expect(waits).toEqual([7]);
  expect(outbox.pending.get()).toEqual([]);
  expect(failureTextKey(refusal)).toBe("failure.tooMany");
});

test("of two tabs, one sends all messages of a closed tab, in order", async () => {
  const posted: string[] = [];
  const messages = browserWith();
  messages.keep(unsentMessage({ key: "1", text: "one", writtenAt: Date.now() - 2 }));
  messages.keep(unsentMessage({ key: "2", text: "two", writtenAt: Date.now() - 1 }));
  const locks = createLocks();
  const openTab = (requestDelay_ms: number) =>
    createOutboxWith({
      post: async (entry) => {
        if (entry.key === "1") await sleep(5);
        posted.push(entry.text);
        return messageOf(entry);
      },
      ...outboxDefaults(),
      unsent: { ...messages, claim: locks(requestDelay_ms) },
    }).start();
  openTab(2);
  openTab(0);
  await sleep(50);
  expect(posted).toEqual(["one", "two"]);
});

const picture = { key: "f", uploadId: null, name: "beacon.png", size: 9, modifiedAt: 7, altText: "A hill" };
const sentPicture = { uploadId: "u", name: "beacon.png", altText: "A hill" };

test("a message is posted after its files, and a lost connection continues the same upload", async () => {
  const [uploadIds, posted, unsent] = [[] as (string | null)[], [] as unknown[], browserWith()];
  const outbox = createOutboxWith({
    ...outboxDefaults(),
    unsent,
    waitForRetry: async () => {},
    upload: async ({ uploadId }, _, onCreated) => {
      uploadIds.push(uploadId);
      onCreated("u");
      if (uploadId === null) throw networkError;
      expect(unsent.get(unsent.keys()[0] ?? "")?.files).toEqual([{ ...picture, uploadId: "u" }]);
      return "u";
    },
    post: async (entry) => {
      posted.push(entry.files);
      expect(unsent.get(entry.key)?.files).toEqual([sentPicture]);
      if (posted.length === 1) throw networkError;
      return messageOf(entry);
    },
  });
  outbox.send("t", "", null, [picture]);
  await runPendingTasks();
  expect(uploadIds).toEqual([null, "u"]);
  expect(posted).toEqual([[sentPicture], [sentPicture]]);
  expect([unsent.keys(), outbox.pending.get()]).toEqual([[], []]);
});

test("a message that is discarded ends its upload, and is not posted", async () => {
  const forgotten: string[] = [];
  const outbox = createOutboxWith({
    ...outboxDefaults(),
    unsent: browserWith(),
    upload: (_, signal) => new Promise((__, reject) => signal.addEventListener("abort", reject)),
    forget: ({ key }) => void forgotten.push(key),
    post: () => Promise.reject(new Error("posted")),
  });
  outbox.send("t", "one", null, [picture]);
  await runPendingTasks();
  outbox.discard(outbox.pending.get()[0]?.key ?? "");
  await runPendingTasks();
  expect([forgotten, outbox.pending.get()]).toEqual([["f"], []]);
});

test("a message whose file is refused says why, and stays", async () => {
  const outbox = createOutboxWith({
    ...outboxDefaults(),
    unsent: browserWith(),
    upload: () => Promise.reject(new FileFailure("file.refusal.UNREADABLE")),
    post: () => Promise.reject(new Error("posted")),
  });
  outbox.send("t", "one", null, [picture]);
  await runPendingTasks();
  expect(outbox.pending.get()[0]).toMatchObject({ state: "failed", reason: "file.refusal.UNREADABLE" });
});
