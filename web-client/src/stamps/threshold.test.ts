import { expect, test } from "vitest";
import { isThreshold } from "./threshold";

test("a threshold is a whole number up to the limit of its kind", () => {
  expect(["1", " 100 ", "1000"].every((text) => isThreshold("MESSAGES_POSTED", text))).toBe(true);
  expect(isThreshold("MEMBER_DAYS", "3650")).toBe(true);
  for (const text of ["", "0", "-1", "1.5", "1001", "1e2", "one"])
    expect(isThreshold("REACTIONS_RECEIVED", text), text).toBe(false);
});
