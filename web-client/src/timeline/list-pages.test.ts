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

test("the next page is loaded after each full page", () => {
  const list = watchedList();
  list.emit(null, true, "a", "b");
  expect(list.ids()).toEqual(["a", "b"]);
  list.emit("b", true, "c", "d");
  list.emit("d", false, "e");
  expect(list.ids()).toEqual(["a", "b", "c", "d", "e"]);
  expect([...list.watched.keys()]).toEqual([null, "b", "d"]);
});

test("after an insertion into a page, the next page is loaded again, and no item is there twice", () => {
  const list = watchedList();
  list.emit(null, true, "a", "c");
  list.emit("c", false, "d");
  list.emit(null, true, "a", "b");
  expect([...list.watched.keys()]).toEqual([null, "b"]);
  expect(list.ids()).toEqual(["a", "b", "d"]);
  list.emit("b", false, "c", "d");
  expect(list.ids()).toEqual(["a", "b", "c", "d"]);
});

test("a page that changes but keeps its last item reloads no other page", () => {
  const list = watchedList();
  list.emit(null, true, "a", "b");
  const next = list.watched.get("b");
  list.emit(null, true, "x", "b");
  expect(list.watched.get("b")).toBe(next);
});

test("a list can shrink, and watches no page after it is stopped", () => {
  const list = watchedList();
  list.emit(null, true, "a", "b");
  list.emit("b", false, "c");
  list.emit(null, false, "a");
  expect(list.ids()).toEqual(["a"]);
  list.stop();
  expect(list.watched.size).toBe(0);
});
