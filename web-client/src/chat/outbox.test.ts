import { expect, test } from "vitest";
import { failureTextKey, retryAfterMs } from "../api/failure";
import type { Message } from "./operations";
import { createOutboxWith, type PendingMessage } from "./outbox";

const runPendingTasks = () => new Promise((resolve) => setTimeout(resolve, 0));
const messageOf = (entry: PendingMessage) =>
  ({ id: entry.key, topicId: entry.topicId, text: entry.text, stamp: null }) as Message;

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
    waitForRetry: () => new Promise(() => {}),
  });
  outbox.send("t", "one", null);
  const [entry] = outbox.pending.get() as [PendingMessage];
  outbox.markArrived(messageOf(entry));
  expect(outbox.pending.get()[0]?.hasArrived).toBe(true);
  failPost({ networkError: new Error("cut") });
  await runPendingTasks();
  expect(outbox.pending.get()[0]).toMatchObject({ hasArrived: false, state: "waiting" });
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
      expect(outbox.pending.get()[0]).toMatchObject({ state: "waiting", error: refusal });
      isRefused = false;
    },
  });
  outbox.send("t", "one", null);
  await runPendingTasks();
  expect(waits).toEqual([7]);
  expect(outbox.pending.get()).toEqual([]);
  expect(failureTextKey(refusal)).toBe("failure.tooMany");
});
