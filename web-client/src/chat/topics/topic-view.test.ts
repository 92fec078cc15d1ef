import { expect, test, vi } from "vitest";
import type { Api } from "../../api/api";
import type { Outbox } from "../composer/outbox";
import type { Message } from "../operations";
import { openTopicView } from "./topic-view";

vi.mock("../../ui/toasts", () => ({ notifyFailure: () => {} }));

const message = (text: string) =>
  ({ id: "m1", timestamp: "1700000000.000000", topicId: "t", author: { id: "ben" }, text }) as Message;
const withRole = (text: string): Message => ({ ...message(text), authorRole: "OWNER" });
const outbox = { onSent: () => () => {}, markArrived: () => {} } as unknown as Outbox;

/** Returns an API that serves one message, and a function that emits topic events. */
function fakeApi() {
  let emit = (_: object) => {};
  const direct = {
    query: () => ({
      toPromise: async () => ({
        data: { messages: { items: [withRole("old")], hasOlder: false, hasNewer: false } },
      }),
    }),
    subscription: () => ({
      subscribe: (next: (result: object) => void) => {
        emit = (event) => next({ data: { topicEvents: event } });
        return { unsubscribe: () => {} };
      },
    }),
  };
  return { api: { direct, cached: direct } as unknown as Api, emit: (event: object) => emit(event) };
}

test("a topic view ignores events of unknown types, and a changed message keeps its author's role", async () => {
  const { api, emit } = fakeApi();
  const changes: string[] = [];
  const topicView = openTopicView(api, outbox, "t", {
    viewerId: "ann",
    parentId: null,
    timestamp: null,
    stored: { readUpTo: null, unreadCount: 0 },
    withRoles: true,
    onTopicChanged: () => changes.push("changed"),
  });
  emit({ __typename: "StreamReady", cursor: "c0", resumed: false });
  await new Promise((resolve) => setTimeout(resolve, 0));
  const texts = () => topicView.feed.state.get().window.items.map(({ text }) => text);
  expect(texts()).toEqual(["old"]);
  expect(() => emit({ __typename: "TopicRenamed", cursor: "c1" })).not.toThrow();
  emit({ __typename: "MessageEdited", cursor: "c2", message: message("new") });
  expect(texts()).toEqual(["new"]);
  emit({ __typename: "TopicChanged", cursor: "c3", topic: { id: "t" } });
  expect(changes).toEqual(["changed"]);
  expect(topicView.feed.state.get().window.items[0]?.authorRole).toBe("OWNER");
  topicView.stop();
});
