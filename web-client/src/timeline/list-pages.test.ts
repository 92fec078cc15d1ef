import { expect, test } from "vitest";
import { type ListPage, watchPages } from "./list-pages";

const named = (...ids: string[]) => ids.map((id) => ({ id }));

/** A server whose pages are emitted by the test; `asked` holds the current subscribers. */
function parts() {
  const asked = new Map<string | null, (part: ListPage<{ id: string }>) => void>();
  let ids: string[] = [];
  const stop = watchPages<{ id: string }>(
    (after, onPart) => {
      asked.set(after, onPart);
      return () => asked.delete(after);
    },
    (items) => {
      ids = items.map(({ id }) => id);
    },
  );
  const emit = (after: string | null, full: boolean, ...ids: string[]) =>
    asked.get(after)?.({ items: named(...ids), full });
  return { asked, emit, stop, ids: () => ids };
}

test("a full page is followed by the next, up to one that is not full", () => {
  const list = parts();
  list.emit(null, true, "a", "b");
  expect(list.ids()).toEqual(["a", "b"]);
  list.emit("b", true, "c", "d");
  list.emit("d", false, "e");
  expect(list.ids()).toEqual(["a", "b", "c", "d", "e"]);
  expect([...list.asked.keys()]).toEqual([null, "b", "d"]);
});

test("an item inserted into a page shifts the next page without duplicates or losses", () => {
  const list = parts();
  list.emit(null, true, "a", "c");
  list.emit("c", false, "d");
  list.emit(null, true, "a", "b");
  expect([...list.asked.keys()]).toEqual([null, "b"]);
  expect(list.ids()).toEqual(["a", "b", "d"]);
  list.emit("b", false, "c", "d");
  expect(list.ids()).toEqual(["a", "b", "c", "d"]);
});

test("a change in a page with the same last item reloads nothing", () => {
  const list = parts();
  list.emit(null, true, "a", "b");
  const next = list.asked.get("b");
  list.emit(null, true, "x", "b");
  expect(list.asked.get("b")).toBe(next);
});

test("a list can shrink, and has no subscribers after the stop", () => {
  const list = parts();
  list.emit(null, true, "a", "b");
  list.emit("b", false, "c");
  list.emit(null, false, "a");
  expect(list.ids()).toEqual(["a"]);
  list.stop();
  expect(list.asked.size).toBe(0);
});
