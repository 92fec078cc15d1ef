import { expect, test } from "vitest";
import { ENDS_OF_BANS, ENDS_OF_MUTES, endOf, untilOf } from "./ends";

const NOW = new Date("2030-01-01T12:00:00Z");

test("a duration ends that long after now", () => {
  expect(endOf({ name: "hour", local: "" }, NOW)).toEqual(new Date("2030-01-01T13:00:00Z"));
  expect(endOf({ name: "eightHours", local: "" }, NOW)).toEqual(new Date("2030-01-01T20:00:00Z"));
  expect(endOf({ name: "month", local: "" }, NOW)).toEqual(new Date("2030-01-31T12:00:00Z"));
  expect(endOf({ name: "never", local: "" }, NOW)).toBe("never");
  expect(untilOf("day", NOW)).toBe("2030-01-02T12:00:00.000Z");
  expect(untilOf("never", NOW)).toBeNull();
});

test("a chosen end must be in the future", () => {
  expect(endOf({ name: "custom", local: "2031-01-01T12:00" }, NOW)).toEqual(new Date("2031-01-01T12:00"));
  expect(endOf({ name: "custom", local: "2029-01-01T12:00" }, NOW)).toBeNull();
  expect(endOf({ name: "custom", local: "" }, NOW)).toBeNull();
});

test("a moderator's mute always ends", () => {
  expect(ENDS_OF_MUTES).not.toContain("never");
  expect(ENDS_OF_BANS).toContain("never");
});
