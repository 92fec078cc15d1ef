import { expect, test } from "vitest";
import { type AlertSettings, isWanted } from "./rules";

const NOON = new Date("2026-11-28T12:00:00Z");
const place = { topicId: "t", communityId: "c" };
const settings = (parts: Partial<AlertSettings> = {}): AlertSettings => ({
  ways: [
    { category: "MENTION", push: true },
    { category: "REPLY", push: true },
    { category: "FOLLOW", push: false },
  ],
  levels: [],
  quietHours: null,
  ...parts,
});
const isMentionWanted = (parts: Partial<AlertSettings>, now = NOON) =>
  isWanted({ category: "MENTION" }, place, settings(parts), now);

test("only the chosen categories are wanted", () => {
  expect(isMentionWanted({})).toBe(true);
  expect(isWanted({ category: "FOLLOW" }, null, settings(), NOON)).toBe(false);
  expect(isWanted({ category: "REACTION" }, null, settings(), NOON)).toBe(false);
});

test("the level of the topic has precedence over that of its community", () => {
  const nothing = { kind: "COMMUNITY", placeId: "c", level: "NOTHING" } as const;
  const everything = { kind: "TOPIC", placeId: "t", level: "ALL" } as const;
  expect(isMentionWanted({ levels: [nothing] })).toBe(false);
  expect(isMentionWanted({ levels: [nothing, everything] })).toBe(true);
  expect(isWanted({ category: "MENTION" }, null, settings({ levels: [nothing] }), NOON)).toBe(true);
});

test("the level of mentions leaves out everything else", () => {
  const levels = [{ kind: "TOPIC", placeId: "t", level: "MENTIONS" }] as const;
  expect(isMentionWanted({ levels })).toBe(true);
  expect(isWanted({ category: "REPLY" }, place, settings({ levels }), NOON)).toBe(false);
});

test("nothing is wanted in quiet hours of the person's time zone, also over midnight", () => {
  const night = { start: "22:00", end: "07:00", timeZone: "Asia/Tokyo" };
  // 12:00 UTC is 21:00 in Tokyo.
  const at = (hours: number) => new Date(NOON.getTime() + hours * 3_600_000);
  expect([0, 1, 5, 9.9, 10].map((hours) => isMentionWanted({ quietHours: night }, at(hours)))).toEqual([
    true,
    false,
    false,
    false,
    true,
  ]);
  const lunch = { start: "12:00", end: "13:00", timeZone: "UTC" };
  expect([-0.1, 0, 1].map((hours) => isMentionWanted({ quietHours: lunch }, at(hours)))).toEqual([
    true,
    false,
    true,
  ]);
});
