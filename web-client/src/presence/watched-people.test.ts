import { expect, test } from "vitest";
import { idsToWatch, MAX_WATCHED } from "./watched-people";

test("the same people are the same list in any order", () => {
  const one = new Map([
    ["bob", 1],
    ["ann", 2],
  ]);
  expect(idsToWatch(one)).toEqual(["ann", "bob"]);
});

test("of too many people, those who appeared last are watched", () => {
  const people = new Map(Array.from({ length: MAX_WATCHED + 1 }, (_, n) => [`p${n}`, 1]));
  const ids = idsToWatch(people);
  expect(ids).toHaveLength(MAX_WATCHED);
  expect(ids).not.toContain("p0");
});
