import { expect, test } from "vitest";
import { fieldValueOf, instantOf } from "./replay-time";

test("an instant becomes the value of a field and back", () => {
  const date = new Date("2026-11-21T12:34:00Z");
  expect(fieldValueOf(date)).toMatch(/^2026-11-2\dT\d\d:\d4$/);
  expect(instantOf(fieldValueOf(date))).toBe(date.toISOString());
});

test("an empty or incomplete field has no instant", () => {
  expect(instantOf("")).toBeNull();
  expect(instantOf("2026-13")).toBeNull();
});
