import type { Client, Sink } from "graphql-ws";
import { expect, test } from "vitest";
import { cursorOf, subscribeWithResume } from "./connection";

test("the payload that is sent again after a disconnect has the cursor of the last event", () => {
  const payload = { query: "", variables: {} as Record<string, unknown> };
  let sink: Sink | undefined;
  const socket = {
    subscribe: (sentPayload: unknown, subscriptionSink: Sink) => {
      expect(sentPayload).toBe(payload);
      sink = subscriptionSink;
      return () => {};
    },
  } as unknown as Client;
  const received: unknown[] = [];
  subscribeWithResume(socket, payload, {
    next: (result) => received.push(result),
    error: () => {},
    complete: () => {},
  });
  sink?.next({ data: { topicEvents: { cursor: "c1" } } });
  sink?.next({ data: { topicEvents: { cursor: "c2" } } });
  expect(payload.variables.since).toBe("c2");
  expect(received).toHaveLength(2);
});

test("a result without an event has no cursor", () => {
  expect(cursorOf(null)).toBeUndefined();
  expect(cursorOf({ topicEvents: null })).toBeUndefined();
});
