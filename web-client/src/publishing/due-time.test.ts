import { expect, test } from "vitest";
import { isTooLate } from "./due-time";

const NOON_MS = Date.parse("2026-11-23T12:00:00Z");
const HOUR_S = 3_600;
const at = (local: string) => ({ local, zone: "UTC", reading: null });

test("a past time is refused only if the post may not be that late", () => {
  expect(isTooLate(at("2026-11-23T11:30"), HOUR_S, NOON_MS)).toBe(false);
  expect(isTooLate(at("2026-11-23T10:59"), HOUR_S, NOON_MS)).toBe(true);
  expect(isTooLate(at("2026-11-23T10:59"), 2 * HOUR_S, NOON_MS)).toBe(false);
  expect(isTooLate(at("2026-11-23T12:01"), HOUR_S, NOON_MS)).toBe(false);
  expect(isTooLate(at("2026-11-23T"), HOUR_S, NOON_MS)).toBe(false);
});
