import { expect, test } from "vitest";
import { checkInput, emptyDraft, isComplete, launchInput } from "./draft";

test("a draft is converted to the API input", () => {
  const draft = {
    ...emptyDraft(),
    name: " List ",
    scenario: "Hello",
    csv: "phone_number\n",
    timeZone: "Asia/Tokyo",
  };
  expect(launchInput(draft)).toMatchObject({ name: "List", window: null, startAt: null, retryDelayS: 1800 });
  const inputWithWindow = launchInput({ ...draft, hasWindow: true, startAt: "2026-11-21T09:00" });
  expect(inputWithWindow.window).toEqual({
    start: "09:00",
    end: "18:00",
    timeZone: "Asia/Tokyo",
    weekdays: ["MON", "TUE", "WED", "THU", "FRI"],
  });
  expect(inputWithWindow.startAt).toBe(new Date(2026, 10, 21, 9).toISOString());
});

test("the country of national numbers is sent in capital letters, or not at all", () => {
  expect(launchInput({ ...emptyDraft(), defaultRegion: " jp" }).defaultRegion).toBe("JP");
  expect(launchInput(emptyDraft()).defaultRegion).toBeNull();
});

test("a list can be checked without a name and a scenario, but is complete only with both", () => {
  const draft = { ...emptyDraft(), csv: "phone_number\n" };
  expect(isComplete(draft)).toBe(false);
  expect(checkInput(draft)).toMatchObject({ name: "?", scenario: "?" });
});

test("invalid numbers become the least allowed values", () => {
  expect(
    launchInput({ ...emptyDraft(), maxAttempts: "", retryMinutes: "x", expectedCallS: "90" }),
  ).toMatchObject({
    maxAttempts: 1,
    retryDelayS: 0,
    expectedCallS: 90,
  });
});
