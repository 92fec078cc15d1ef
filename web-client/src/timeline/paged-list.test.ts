import { expect, test } from "vitest";
import { firstPage, PAGE_SIZE, withChange, withNewestPage, withNextPage } from "./paged-list";

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

test("the list begins anew when more items are new than fit on a page", () => {
  const list = withNextPage(firstPage(numbers(100, PAGE_SIZE)), numbers(50, 3));
  expect(withNewestPage(list, numbers(300, PAGE_SIZE), key)).toEqual(firstPage(numbers(300, PAGE_SIZE)));
  expect(withNewestPage(firstPage<string>([]), numbers(2, 2), key)).toEqual({
    items: ["2", "1"],
    hasMore: false,
  });
});

test("an item is replaced or removed", () => {
  const list = firstPage(["a", "b"]);
  expect(withChange(list, (item) => (item === "b" ? "c" : item)).items).toEqual(["a", "c"]);
  expect(withChange(list, (item) => (item === "b" ? null : item)).items).toEqual(["a"]);
});
