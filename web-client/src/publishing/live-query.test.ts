import { expect, test } from "vitest";
import { coalesceRuns } from "./live-query";

test("a call during a run causes exactly one more run", async () => {
  let now = 0;
  const seen: number[] = [];
  const refresh = coalesceRuns(async () => {
    const read = now;
    await Promise.resolve();
    seen.push(read);
  }, 0);
  refresh();
  now = 1;
  refresh();
  now = 2;
  refresh();
  await expect.poll(() => seen).toEqual([0, 2]);
  now = 3;
  refresh();
  await expect.poll(() => seen).toEqual([0, 2, 3]);
});
