import { expect, test } from "vitest";
import type { Message } from "./operations";
import { createOutboxOver, type PendingMessage } from "./outbox";

const settle = () => new Promise((resolve) => setTimeout(resolve, 0));
const posted = (entry: PendingMessage) =>
  ({ id: entry.key, topicId: entry.topicId, text: entry.text, stamp: null }) as Message;

test("an undelivered message is sent again with the same key, in order", async () => {
  const tried: string[] = [];
  const keys = new Set<string>();
  let cut = true;
  let mend = () => {};
  const outbox = createOutboxOver({
    post: async (entry) => {
      tried.push(entry.text);
      keys.add(entry.key);
      if (cut) throw { networkError: new Error("cut") };
      return posted(entry);
    },
    pause: () =>
      new Promise((resolve) => {
        mend = resolve;
      }),
  });
  outbox.send("t", "one", null);
  outbox.send("t", "two", null);
  await settle();
  expect(outbox.pending.get().map(({ state }) => state)).toEqual(["waiting", "sending"]);
  cut = false;
  mend();
  await settle();
  expect(tried).toEqual(["one", "one", "two"]);
  expect(keys.size).toBe(2);
  expect(outbox.pending.get()).toEqual([]);
});

test("a refused message stays, does not block the next, and can be retried", async () => {
  let refused = true;
  const outbox = createOutboxOver({
    post: async (entry) => {
      if (refused && entry.text === "bad") throw { graphQLErrors: [{ extensions: { code: "FORBIDDEN" } }] };
      return posted(entry);
    },
    pause: async () => {},
  });
  outbox.send("t", "bad", null);
  outbox.send("t", "good", null);
  await settle();
  expect(outbox.pending.get().map(({ text, state }) => [text, state])).toEqual([["bad", "failed"]]);
  refused = false;
  outbox.retry(outbox.pending.get()[0]?.key ?? "");
  await settle();
  expect(outbox.pending.get()).toEqual([]);
});

test("an event before the answer hides the pending message until the answer or a failure", async () => {
  let fail = (_: unknown) => {};
  const outbox = createOutboxOver({
    post: () =>
      new Promise((_, reject) => {
        fail = reject;
      }),
    pause: () => new Promise(() => {}),
  });
  outbox.send("t", "one", null);
  const [entry] = outbox.pending.get() as [PendingMessage];
  outbox.markArrived(posted(entry));
  expect(outbox.pending.get()[0]?.arrived).toBe(true);
  fail({ networkError: new Error("cut") });
  await settle();
  expect(outbox.pending.get()[0]).toMatchObject({ arrived: false, state: "waiting" });
});
