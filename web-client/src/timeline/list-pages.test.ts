import { expect, test } from "vitest";
import { type ListPage, watchPages } from "./list-pages";

const itemsOf = (...ids: string[]) => ids.map((id) => ({ id }));

/**
 * Returns a watched list whose pages the test emits. `callbacksByAfter` has each page's callback by the item before it.
 */
function watchedList() {
  const callbacksByAfter = new Map<string | null, (page: ListPage<{ id: string }>) => void>();
  let ids: string[] = [];
  const stop = watchPages<{ id: string }>(
    (after, onPage) => {
      callbacksByAfter.set(after, onPage);
      return () => callbacksByAfter.delete(after);
    },
    (items) => {
      ids = items.map(({ id }) => id);
    },
  );
  const emit = (after: string | null, isFull: boolean, ...ids: string[]) =>
    callbacksByAfter.get(after)?.({ items: itemsOf(...ids), isFull });
  return { watched: callbacksByAfter, emit, stop, ids: () => ids };
}

test("a full page is followed by the next, up to one that is not full", () => {
  const list = watchedList();
  list.emit(null, true, "a", "b");
  expect(list.ids()).toEqual(["a", "b"]);
  list.emit("b", true, "c", "d");
  list.emit("d", false, "e");
  expect(list.ids()).toEqual(["a", "b", "c", "d", "e"]);
  expect([...list.watched.keys()]).toEqual([null, "b", "d"]);
});

test("an item inserted into a page shifts the next page without duplicates or losses", () => {
  const list = watchedList();
  list.emit(null, true, "a", "c");
  list.emit("c", false, "d");
  list.emit(null, true, "a", "b");
  expect([...list.watched.keys()]).toEqual([null, "b"]);
  expect(list.ids()).toEqual(["a", "b", "d"]);
  list.emit("b", false, "c", "d");
  expect(list.ids()).toEqual(["a", "b", "c", "d"]);
});

test("a change in a page with the same last item reloads nothing", () => {
  const list = watchedList();
  list.emit(null, true, "a", "b");
  const next = list.watched.get("b");
  list.emit(null, true, "x", "b");
  expect(list.watched.get("b")).toBe(next);
});

test("a list can shrink, and has no subscribers after the stop", () => {
  const list = watchedList();
  list.emit(null, true, "a", "b");
  list.emit("b", false, "c");
  list.emit(null, false, "a");
  expect(list.ids()).toEqual(["a"]);
  list.stop();
  expect(list.watched.size).toBe(0);
});
