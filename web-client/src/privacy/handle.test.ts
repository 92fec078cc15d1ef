import { expect, test } from "vitest";
import { isHandleOf } from "./handle";

test("a handle is confirmed with and without @", () => {
  expect(isHandleOf(" @ann ", "ann")).toBe(true);
  expect(isHandleOf("ann", "ann")).toBe(true);
  expect(isHandleOf("an", "ann")).toBe(false);
  expect(isHandleOf("@@ann", "ann")).toBe(false);
});
