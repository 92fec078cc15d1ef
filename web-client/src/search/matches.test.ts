import { expect, test } from "vitest";
import { type SearchMatch, withMatchPage, withOperator } from "./matches";

const match = (id: string): SearchMatch => ({
  id,
  timestamp: "1700000000.000001",
  author: { id: "u", handle: "ann", name: "Ann" },
  excerpt: [],
  topic: null,
  stamp: null,
  editedAt: null,
  deletedAt: null,
});
const page = { hasOlder: true, oldest: "5.000000", searchedTo: null };

test("a page is added without the results that are known", () => {
  const first = withMatchPage(null, { ...page, items: [match("a"), match("b")] });
  expect(first.next).toBe("5.000000");
  const second = withMatchPage(first, { ...page, hasOlder: false, items: [match("b"), match("c")] });
  expect(second.items.map(({ id }) => id)).toEqual(["a", "b", "c"]);
  expect(second.next).toBeNull();
});

test("a search that stopped early continues where it stopped, even without results", () => {
  const first = withMatchPage(null, { items: [], hasOlder: true, oldest: null, searchedTo: "3.000000" });
  expect(first).toEqual({ items: [], next: "3.000000", isIncomplete: true });
});

test("a page without new results is the last one", () => {
  const first = withMatchPage(null, { ...page, items: [match("a")] });
  expect(withMatchPage(first, { ...page, items: [match("a")] }).next).toBeNull();
});

test("an operator is added at the end, and a date operator with a day", () => {
  expect(withOperator(" boat ", "has:link", "2026-11-23")).toBe("boat has:link");
  expect(withOperator("", "after:", "2026-11-23")).toBe("after:2026-11-23");
});
