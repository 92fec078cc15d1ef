import { expect, test } from "vitest";
import { coalesceRuns } from "./live-query";

test("several calls during a run cause exactly one more run", async () => {
  let serverValue = 0;
  const results: number[] = [];
  const refresh = coalesceRuns(async () => {
    const value = serverValue;
    await Promise.resolve();
    results.push(value);
    return null;
  }, 0);
  refresh();
  serverValue = 1;
  refresh();
  serverValue = 2;
  refresh();
  await expect.poll(() => results).toEqual([0, 2]);
  serverValue = 3;
  refresh();
  await expect.poll(() => results).toEqual([0, 2, 3]);
});

test("a run that failed is repeated", async () => {
  const results: (number | null)[] = [5, 5, null];
  let runs = 0;
  const refresh = coalesceRuns(async () => results[runs++] ?? null, 0);
  refresh();
  await expect.poll(() => runs).toBe(3);
});
