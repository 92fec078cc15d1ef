import { expect, test } from "vitest";
import { titleOf } from "./page-title";

test("the title has the number of what is unread", () => {
  expect(titleOf("Watch", 0)).toBe("Watch · Noroshi");
  expect(titleOf("Watch", 3)).toBe("(3) Watch · Noroshi");
  expect(titleOf("Watch", 100)).toBe("(99+) Watch · Noroshi");
});
