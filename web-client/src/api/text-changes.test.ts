import { expect, test } from "vitest";
import { type TextChanges, withChange, withReported } from "./text-changes";

const T1 = "2026-11-21T12:00:00.001Z";
const T2 = "2026-11-21T12:00:00.002Z";

const edited = (text: string, editedAt: string) => ({
  topicEvents: {
    __typename: "MessageEdited",
    cursor: "c",
    message: { id: "m", text, editedAt, deletedAt: null, stamp: null, author: { id: "ann" } },
  },
});
const deleted = {
  topicEvents: {
    __typename: "MessageDeleted",
    message: { id: "m", text: "", editedAt: null, deletedAt: T1 },
  },
};
const shown = (changes: TextChanges, item: object = {}) =>
  withChange({ id: "m", text: "before", author: "Ann", ...item }, changes);

test("an edited message is shown with its new text, and keeps what the change does not report", () => {
  expect(shown(withReported({}, edited("after", T1)))).toMatchObject({ text: "after", author: "Ann" });
});

test("a deleted message loses its text, and no late edit brings one back", () => {
  const changes = withReported(withReported({}, deleted), edited("late", T2));
  expect(shown(changes)).toMatchObject({ text: "", deletedAt: T1 });
});

test("of two edits the newer one counts, in any order", () => {
  for (const events of [
    [edited("one", T1), edited("two", T2)],
    [edited("two", T2), edited("one", T1)],
  ])
    expect(shown(events.reduce(withReported, {} as TextChanges)).text).toBe("two");
});

test("an item that was loaded after the change stays as it was loaded", () => {
  const changes = withReported({}, edited("old", T1));
  expect(shown(changes, { text: "loaded", editedAt: T2 }).text).toBe("loaded");
  expect(shown(changes, { text: "", deletedAt: T2 })).toMatchObject({ text: "", deletedAt: T2 });
});

test("the viewer's own edits and deletions are reported by their answers", () => {
  const own = { editMessage: { id: "m", text: "own", editedAt: T1, deletedAt: null } };
  expect(shown(withReported({}, own)).text).toBe("own");
  const removed = { deleteMessage: { id: "m", text: "", editedAt: null, deletedAt: T2 } };
  expect(shown(withReported({}, removed)).deletedAt).toBe(T2);
  expect(shown(withReported({}, { editPost: { id: "m", text: "post", editedAt: T1 } })).text).toBe("post");
});

test("a message that is read again is shown as it is now", () => {
  const current = { id: "m", text: "now", editedAt: T1, deletedAt: null };
  const changes = withReported({}, { currentText0: null, currentText1: current });
  expect(shown(changes).text).toBe("now");
  // A message that was not edited meanwhile stays as it was loaded, such as a search result with its excerpt.
  expect(shown(changes, { text: undefined, editedAt: T1 }).text).toBeUndefined();
});

test("a removed post is deleted, by whichever list reports it", () => {
  for (const data of [
    { homeFeedEvents: { __typename: "PostRemoved", postId: "m" } },
    { localEvents: { __typename: "PostRemoved", postId: "m" } },
    { deletePost: { id: "m" } },
  ])
    expect(shown(withReported({}, data)).deletedAt).toBeTruthy();
});

test("other data reports no change", () => {
  const changes: TextChanges = {};
  for (const data of [
    undefined,
    null,
    { message: { id: "m", text: "loaded", editedAt: T1 } },
    { topicEvents: { __typename: "MessagePosted", message: { id: "m", text: "new" } } },
    { topicEvents: { __typename: "StreamReady" } },
    { markRead: null },
    { post: { __typename: "Post", id: "m" } },
  ])
    expect(withReported(changes, data)).toBe(changes);
});
