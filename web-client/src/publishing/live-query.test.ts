import { expect, test } from "vitest";
import { coalesceRuns } from "./live-query";

test("a call during a run causes exactly one more run", async () => {
  let serverValue = 0;
  const results: number[] = [];
  const refresh = coalesceRuns(async () => {
    const value = serverValue;
    await Promise.resolve();
    results.push(value);
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
