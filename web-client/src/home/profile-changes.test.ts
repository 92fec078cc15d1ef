import { expect, test } from "vitest";
import { changedFields, handleRefusal } from "./profile-changes";

const STORED = { name: "Ann", handle: "ann", bio: "" };
const failure = (extensions: object) => ({ graphQLErrors: [{ extensions }] });
const NOW = new Date("2026-11-30T12:00:00");

test("only changed texts are sent, without spaces around them", () => {
  expect(changedFields(STORED, { ...STORED, name: " Ann ", handle: "newt" })).toEqual({});
  expect(changedFields(STORED, { ...STORED, name: "Ann Lee " })).toEqual({ name: "Ann Lee" });
  expect(changedFields({ ...STORED, bio: "Beacons" }, { ...STORED, bio: " " })).toEqual({ bio: "" });
});

test("a handle that was changed lately can be changed again on a date", () => {
  const error = failure({ code: "RATE_LIMITED", retryAfterMs: 30 * 86_400_000 });
  const refusal = handleRefusal(error, "en", NOW);
  expect(refusal).toEqual({
    textKey: "profile.handleLater",
    values: { date: expect.stringContaining("December 30, 2026") },
  });
  expect(handleRefusal(error, "ja", NOW)?.values?.date).toContain("2026年12月30日");
});

test("an error that is not about the handle is no refusal of it", () => {
  expect(handleRefusal(failure({ code: "CONFLICT" }), "en", NOW)?.textKey).toBe("profile.handleTaken");
  expect(handleRefusal(failure({ code: "BAD_USER_INPUT" }), "en", NOW)?.textKey).toBe("local.badHandle");
  for (const error of [failure({ code: "RATE_LIMITED", retryAfterMs: 900 }), { networkError: true }])
    expect(handleRefusal(error, "en", NOW)).toBeNull();
});
