import { expect, test } from "vitest";
import { type JudgedStanding, verdictLook } from "./verdict-look";

const standing = (parts: Partial<JudgedStanding> = {}): JudgedStanding => ({
  blocked: false,
  verdict: { rule: "DELIVERABLE" },
  success: 0,
  softBounce: 0,
  hardBounce: 0,
  ...parts,
});

test("bounces without a delivery do not look deliverable", () => {
  for (const counts of [{ hardBounce: 36 }, { softBounce: 2 }, { hardBounce: 1, softBounce: 1 }])
    expect(verdictLook(standing({ ...counts, verdict: { rule: "ONLY_BOUNCES" } }))).toEqual({
      tone: "wait",
      icon: "close",
      textKey: "verdict.ONLY_BOUNCES",
    });
});

test("a manual setting keeps its name, and is not good without a delivery", () => {
  const look = verdictLook(standing({ verdict: { rule: "BY_HAND" }, hardBounce: 3 }));
  expect(look).toMatchObject({ tone: "wait", textKey: "verdict.BY_HAND" });
});

test("a standing with deliveries looks deliverable, and a blocked one does not", () => {
  expect(verdictLook(standing({ success: 1, hardBounce: 36 }))).toMatchObject({
    tone: "good",
    textKey: "verdict.DELIVERABLE",
  });
  expect(verdictLook(standing({ blocked: true, verdict: { rule: "HARD_BOUNCED" }, hardBounce: 1 }))).toEqual({
    tone: "bad",
    icon: "close",
    textKey: "verdict.HARD_BOUNCED",
  });
  expect(verdictLook(standing({ verdict: { rule: "UNKNOWN_ADDRESS" } })).tone).toBe("quiet");
});
