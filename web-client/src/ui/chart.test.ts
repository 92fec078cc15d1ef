import { expect, test } from "vitest";
import { timeTicks, valueTicks } from "./chart";

test("an axis has round steps that cover the maximum", () => {
  expect(valueTicks(7)).toEqual([0, 2, 4, 6, 8]);
  expect(valueTicks(600)).toEqual([0, 200, 400, 600]);
  expect(valueTicks(0.03)).toEqual([0, 0.01, 0.02, 0.03]);
  expect(valueTicks(0)[0]).toBe(0);
});

test("ticks of a time axis are round, few, and after its beginning", () => {
  const from_ms = Date.UTC(2026, 0, 1, 9, 0, 7);
  const ticks = timeTicks(from_ms, from_ms + 100 * 60_000, 5);
  expect(ticks.length).toBeLessThanOrEqual(5);
  expect(ticks.every((at_ms) => at_ms % (30 * 60_000) === 0 && at_ms > from_ms)).toBe(true);
});
