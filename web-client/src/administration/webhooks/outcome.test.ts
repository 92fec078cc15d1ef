import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { OUTCOME_POLL_MS, OUTCOME_POLLS_MAX, waitForOutcome } from "./outcome";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

const WAITING = { id: "d1", outcome: "WAITING" };
const DELIVERED = { id: "d1", outcome: "DELIVERED" };
const OTHER = { id: "d2", outcome: "FAILED" };

/** Returns a function that loads these answers one after the other, and the last one from then on. */
function loading(...answers: (readonly { id: string; outcome: string }[] | Error)[]) {
  return vi.fn(async () => {
    const answer = (answers.length > 1 ? answers.shift() : answers[0]) ?? [];
    if (answer instanceof Error) throw answer;
    return answer;
  });
}

test("the outcome is loaded until the delivery has one, also after a failed load", async () => {
  const load = loading([OTHER], new Error("offline"), [WAITING, OTHER], [DELIVERED, OTHER]);
  const outcome = waitForOutcome("d1", load, new AbortController().signal);
  await vi.runAllTimersAsync();
  expect(await outcome).toEqual(DELIVERED);
  expect(load).toHaveBeenCalledTimes(4);
});

test("a delivery that waits forever is given up", async () => {
  const load = loading([WAITING]);
  const outcome = waitForOutcome("d1", load, new AbortController().signal);
  await vi.runAllTimersAsync();
  expect(await outcome).toBeNull();
  expect(load).toHaveBeenCalledTimes(OUTCOME_POLLS_MAX);
});

test("nothing is loaded any more after the screen was left", async () => {
  const [load, left] = [loading([WAITING]), new AbortController()];
  const outcome = waitForOutcome("d1", load, left.signal);
  await vi.advanceTimersByTimeAsync(OUTCOME_POLL_MS);
  left.abort();
  await vi.runAllTimersAsync();
  expect(await outcome).toBeNull();
  expect(load.mock.calls.length).toBeLessThanOrEqual(2);
});
