import { expect, test } from "vitest";
import { daysOf, isShorter } from "./retention-days";

const BOUNDS = { minDays: 1, maxDays: 14 };

test("whole numbers within the bounds are days", () => {
  expect(["1", " 14 ", "0", "15", "1.5", "-1", "x"].map((text) => daysOf(text, BOUNDS))).toEqual([
    1,
    14,
    undefined,
    undefined,
    undefined,
    undefined,
    undefined,
  ]);
});

test("an empty text means the default", () => {
  expect(daysOf("", BOUNDS)).toBeNull();
  expect(daysOf("  ", BOUNDS)).toBeNull();
});

test("every number of days is shorter than for good", () => {
  expect(isShorter(30, null)).toBe(true);
  expect(isShorter(null, 30)).toBe(false);
  expect(isShorter(null, null)).toBe(false);
  expect(isShorter(7, 14)).toBe(true);
  expect(isShorter(14, 14)).toBe(false);
});
