import { expect, test } from "vitest";
import {
  firstPage,
  loadNextPage,
  PAGE_SIZE,
  type PagedItems,
  withChange,
  withNewestPage,
  withNextPage,
} from "./paged-list";

const numbers = (first: number, count: number) => Array.from({ length: count }, (_, n) => String(first - n));
const key = (item: string) => item;

test("a full page may be followed by another one, a shorter page is the last", () => {
  const list = firstPage(numbers(100, PAGE_SIZE));
  expect(list.hasMore).toBe(true);
  const longer = withNextPage(list, numbers(50, 3));
  expect(longer).toEqual({ items: numbers(100, PAGE_SIZE + 3), hasMore: false });
});

test("new items are put before the known ones, each item once", () => {
  const list = withNextPage(firstPage(numbers(100, PAGE_SIZE)), numbers(50, PAGE_SIZE));
  const newer = withNewestPage(list, numbers(102, PAGE_SIZE), key);
  expect(newer).toEqual({ items: numbers(102, 2 * PAGE_SIZE + 2), hasMore: true });
});

test("the list begins anew when the newest page is full and has no known item", () => {
  const list = withNextPage(firstPage(numbers(100, PAGE_SIZE)), numbers(50, 3));
  expect(withNewestPage(list, numbers(300, PAGE_SIZE), key)).toEqual(firstPage(numbers(300, PAGE_SIZE)));
  expect(withNewestPage(firstPage<string>([]), numbers(2, 2), key)).toEqual({
    items: ["2", "1"],
    hasMore: false,
  });
});

test("the next page follows new items that were put before the list while it loaded", async () => {
  let list: PagedItems<string> | null = firstPage(numbers(100, PAGE_SIZE));
  const longer = await loadNextPage(
    () => list,
    async () => {
      list = list && withNewestPage(list, numbers(102, PAGE_SIZE), key);
      return numbers(50, 3);
    },
    key,
  );
  expect(longer).toEqual({ items: numbers(102, PAGE_SIZE + 5), hasMore: false });
});

test("the next page is loaded again if the list has another last item by then", async () => {
  let list: PagedItems<string> | null = firstPage(numbers(100, PAGE_SIZE));
  const requested: string[] = [];
  const longer = await loadNextPage(
    () => list,
    async (after) => {
      requested.push(after);
      list = firstPage(numbers(300, PAGE_SIZE));
      return numbers(Number(after) - 1, 3);
    },
    key,
  );
  expect(requested).toEqual(["51", "251"]);
  expect(longer).toEqual({ items: numbers(300, PAGE_SIZE + 3), hasMore: false });
});

test("a page of a list that was replaced by another list is discarded", async () => {
  let list: PagedItems<string> | null = firstPage(numbers(100, PAGE_SIZE));
  const loadPage = async () => {
    list = null;
    return numbers(50, 3);
  };
  expect(await loadNextPage(() => list, loadPage, key)).toBeNull();
});

test("an item is replaced or removed", () => {
  const list = firstPage(["a", "b"]);
  expect(withChange(list, (item) => (item === "b" ? "c" : item)).items).toEqual(["a", "c"]);
  expect(withChange(list, (item) => (item === "b" ? null : item)).items).toEqual(["a"]);
});
