import { expect, test } from "vitest";
import { daysOf, isDay, plusDays, plusMonths, stepView } from "./calendar/days";
import { instantOf, localOf, localTimeInSlot, offset_min } from "./zones";

const instant = (zone: string, local: string) => instantOf(zone, local).toISOString().slice(0, 16);

test("the instant of a local time is by its zone's offset on that day", () => {
  expect(instant("Asia/Tokyo", "2026-11-23T09:30")).toBe("2026-11-23T00:30");
  expect(instant("America/New_York", "2026-07-01T09:30")).toBe("2026-07-01T13:30");
  expect(instant("America/New_York", "2026-12-01T09:30")).toBe("2026-12-01T14:30");
  expect(instant("Asia/Kathmandu", "2026-12-01T00:00")).toBe("2026-11-30T18:15");
  expect(instant("Europe/Dublin", "2027-07-01T09:00")).toBe("2027-07-01T08:00");
  expect(instant("Africa/Casablanca", "2027-02-20T09:00")).toBe("2027-02-20T09:00");
});

test("a local time just before or after a clock change has the offset of its side", () => {
  expect(instant("Europe/Berlin", "2026-10-25T01:59")).toBe("2026-10-24T23:59");
  expect(instant("Europe/Berlin", "2026-10-25T03:00")).toBe("2026-10-25T02:00");
  expect(instant("Europe/Berlin", "2026-03-29T03:00")).toBe("2026-03-29T01:00");
});

test("a skipped or repeated local time has one of its two instants", () => {
  expect(["2026-10-25T00:30", "2026-10-25T01:30"]).toContain(instant("Europe/London", "2026-10-25T01:30"));
  expect(["2026-03-08T06:30", "2026-03-08T07:30"]).toContain(instant("America/New_York", "2026-03-08T02:30"));
});

test("an instant and its local time convert to each other", () => {
  const at = new Date("2026-11-22T15:00:07Z");
  expect(localOf("Asia/Tokyo", at)).toBe("2026-11-23T00:00:07");
  expect(instantOf("Asia/Tokyo", "2026-11-23T00:00").toISOString()).toBe("2026-11-22T15:00:00.000Z");
  expect(offset_min("America/St_Johns", at)).toBe(-210);
});

test("a move to a day keeps the time of day, and a move to an hour keeps the minutes", () => {
  expect(localTimeInSlot("2026-12-01", "2026-11-23T09:30:15")).toBe("2026-12-01T09:30");
  expect(localTimeInSlot("2026-12-01T18", "2026-11-23T09:30:15")).toBe("2026-12-01T18:30");
});

test("a month has whole weeks, a week begins on the first weekday, and no month is skipped", () => {
  const month = daysOf("month", "2026-11-23", 1);
  expect([month[0], month.at(-1), month.length]).toEqual(["2026-10-26", "2026-12-06", 42]);
  expect(daysOf("month", "2027-02-10", 1)).toHaveLength(28);
  expect(daysOf("week", "2026-11-23", 0)[0]).toBe("2026-11-22");
  expect(plusMonths("2026-01-31", 1)).toBe("2026-02-28");
  expect(plusMonths("2026-03-31", -1)).toBe("2026-02-28");
  expect(plusDays("2026-12-31", 1)).toBe("2027-01-01");
  expect(stepView("week", "2026-11-23", -1)).toBe("2026-11-16");
});

test("only existing dates are days", () => {
  expect(["2026-02-28", "2026-02-30", "today", "2026-2-3"].map(isDay)).toEqual([true, false, false, false]);
});
