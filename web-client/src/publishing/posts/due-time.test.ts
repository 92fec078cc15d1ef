import { expect, test } from "vitest";
import { dueInput, dueInstantOf, isTooLate, nextFullHour } from "./due-time";

const NOON_MS = Date.parse("2026-11-23T12:00:00Z");
const HOUR_S = 3_600;
const at = (local: string) => ({ local, zone: "UTC", reading: null });

test("a full hour is one of the zone's clocks", () => {
  expect(nextFullHour(new Date("2026-11-23T10:10:00Z"), "Asia/Kolkata").local).toBe("2026-11-23T16:00");
  expect(nextFullHour(new Date("2026-11-23T10:00:00Z"), "UTC").local).toBe("2026-11-23T10:00");
  expect(nextFullHour(new Date("2026-11-23T10:00:01Z"), "UTC").local).toBe("2026-11-23T11:00");
});

test("the local time is sent as it is written, unless the viewer has chosen an instant", () => {
  const dueTime = { local: "2026-10-25T02:30", zone: "Europe/Berlin", reading: null };
  expect(dueInput(dueTime)).toEqual({ dueAtLocal: "2026-10-25T02:30", timeZone: "Europe/Berlin" });
  const chosen = { ...dueTime, reading: "2026-10-25T01:30:00Z" };
  expect(dueInput(chosen)).toEqual({ dueAt: "2026-10-25T01:30:00Z", timeZone: "Europe/Berlin" });
  expect(dueInstantOf(chosen).toISOString()).toBe("2026-10-25T01:30:00.000Z");
  const summer = { ...dueTime, local: "2026-07-01T02:30" };
  expect(dueInstantOf(summer).toISOString()).toBe("2026-07-01T00:30:00.000Z");
});

test("a past time is too late only if it lies further back than the post may be late", () => {
  expect(isTooLate(at("2026-11-23T11:30"), HOUR_S, NOON_MS)).toBe(false);
  expect(isTooLate(at("2026-11-23T10:59"), HOUR_S, NOON_MS)).toBe(true);
  expect(isTooLate(at("2026-11-23T10:59"), 2 * HOUR_S, NOON_MS)).toBe(false);
  expect(isTooLate(at("2026-11-23T12:01"), HOUR_S, NOON_MS)).toBe(false);
  expect(isTooLate(at("2026-11-23T"), HOUR_S, NOON_MS)).toBe(false);
});
