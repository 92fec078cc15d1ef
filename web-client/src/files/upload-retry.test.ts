import { expect, test } from "vitest";
import { nextOffset, retryDelayMs } from "./upload-retry";

test("next offset comes from stored bytes only", () => {
  expect(nextOffset(204, "12")).toBe(12);
  expect(nextOffset(409, "7")).toBe(7);
  for (const [status, header] of [
    [503, "12"],
    [204, null],
    [204, "1e3"],
    [0, null],
  ] as const)
    expect(nextOffset(status, header)).toBeNull();
});

test("lost connections and busy servers are tried again, refusals are not", () => {
  expect([0, 409, 429, 503].map((status) => retryDelayMs(status, 1))).toEqual([1000, 1000, 1000, 1000]);
  expect([400, 401, 403, 404, 413].map((status) => retryDelayMs(status, 1))).toEqual(Array(5).fill(null));
  expect(retryDelayMs(503, 8)).toBe(15_000);
  expect(retryDelayMs(503, 9)).toBeNull();
});

test("an upload without a connection soon waits for it", () => {
  expect(retryDelayMs(0, 3)).toBe(4000);
  expect(retryDelayMs(0, 4)).toBeNull();
});
