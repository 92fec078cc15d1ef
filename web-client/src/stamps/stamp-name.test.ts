import { expect, test } from "vitest";
import { isStampName, stampNameOf } from "./stamp-name";

test("a stamp is named like its file as far as the server allows", () => {
  expect(stampNameOf("Lit Beacon.png")).toBe("lit-beacon");
  expect(stampNameOf("a.b.webp")).toBe("a-b");
  expect(stampNameOf("x".repeat(40))).toHaveLength(32);
  expect(stampNameOf("狼煙.png")).toBe("");
});

test("names have 2 to 32 letters, digits and signs", () => {
  expect(["lit", "L_1-x", "x".repeat(32)].every(isStampName)).toBe(true);
  expect(["", "a", "two words", "é2", "a.b", "x".repeat(33)].some(isStampName)).toBe(false);
});
