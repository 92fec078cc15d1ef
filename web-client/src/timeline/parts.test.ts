import { expect, test } from "vitest";
import { followParts, type Part } from "./parts";

const named = (...ids: string[]) => ids.map((id) => ({ id }));

/** A server whose parts are told by hand; `asked` holds who listens now. */
function parts() {
  const asked = new Map<string | null, (part: Part<{ id: string }>) => void>();
  let known: string[] = [];
  const stop = followParts<{ id: string }>(
    (after, heard) => {
      asked.set(after, heard);
      return () => asked.delete(after);
    },
    (items) => {
      known = items.map(({ id }) => id);
    },
  );
  const tell = (after: string | null, full: boolean, ...ids: string[]) =>
    asked.get(after)?.({ items: named(...ids), full });
  return { asked, tell, stop, known: () => known };
}

test("a full part is followed by the next, up to one that is not full", () => {
  const list = parts();
  list.tell(null, true, "a", "b");
  expect(list.known()).toEqual(["a", "b"]);
  list.tell("b", true, "c", "d");
  list.tell("d", false, "e");
  expect(list.known()).toEqual(["a", "b", "c", "d", "e"]);
  expect([...list.asked.keys()]).toEqual([null, "b", "d"]);
});

test("an item that comes into a part moves the next one, and nothing is there twice or lost", () => {
  const list = parts();
  list.tell(null, true, "a", "c");
  list.tell("c", false, "d");
  list.tell(null, true, "a", "b");
  expect([...list.asked.keys()]).toEqual([null, "b"]);
  expect(list.known()).toEqual(["a", "b", "d"]);
  list.tell("b", false, "c", "d");
  expect(list.known()).toEqual(["a", "b", "c", "d"]);
});

test("what changes in a part that ends as before asks for nothing anew", () => {
  const list = parts();
  list.tell(null, true, "a", "b");
  const next = list.asked.get("b");
  list.tell(null, true, "x", "b");
  expect(list.asked.get("b")).toBe(next);
});

test("a list that shrinks ends where it ends, and nobody listens after the stop", () => {
  const list = parts();
  list.tell(null, true, "a", "b");
  list.tell("b", false, "c");
  list.tell(null, false, "a");
  expect(list.known()).toEqual(["a"]);
  list.stop();
  expect(list.asked.size).toBe(0);
});
