import { expect, test } from "vitest";
import { callCurve, peakOf, withPoint } from "./call-curve";

const at = (second: number) => new Date(second * 1000).toISOString();

test("overlapping calls make steps up and down, and simultaneous changes are one step", () => {
  const calls = [
    { startedAt: at(1), endedAt: at(4) },
    { startedAt: at(2), endedAt: at(4) },
    { startedAt: at(4), endedAt: null },
    { startedAt: null, endedAt: null },
  ];
  const points = [
    [1, 1],
    [2, 2],
    [4, 1],
  ];
  expect(callCurve(calls)).toEqual(
    points.map(([second, active]) => ({ at_ms: (second ?? 0) * 1000, active })),
  );
});

test("a live point is appended, and a repeated event changes nothing", () => {
  const points = callCurve([{ startedAt: at(1), endedAt: null }]);
  const next = withPoint(points, { at_ms: 2_000, active: 3 });
  expect(next).toHaveLength(2);
  expect(withPoint(next, { at_ms: 2_000, active: 3 })).toBe(next);
  expect(withPoint(next, { at_ms: 1_500, active: 9 })).toBe(next);
  expect(withPoint(next, { at_ms: 2_000, active: 1 }).at(-1)).toEqual({ at_ms: 2_000, active: 1 });
});

test("the curve of a long job is thinned out and keeps its peak", () => {
  const calls = Array.from({ length: 20_000 }, (_, n) => ({
    startedAt: at(n),
    endedAt: at(n === 9_999 ? n + 3.5 : n + 0.5),
  }));
  const points = callCurve(calls);
  expect(points.length).toBeLessThanOrEqual(2_000);
  expect(peakOf(points)).toBe(2);
});
