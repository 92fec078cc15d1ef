import { afterEach, expect, test, vi } from "vitest";
import type { Api } from "../../api/api";
import { createReadState } from "./read-state";

/** Returns an API that records the timestamps to which the read mark is moved. */
function recordingApi() {
  const moves: string[] = [];
  const mutation = (_: unknown, { timestamp }: { timestamp: string }) => {
    moves.push(timestamp);
    return { toPromise: async () => ({ data: {} }) };
  };
  return { api: { cached: { mutation } } as unknown as Api, moves };
}

afterEach(() => vi.useRealTimers());

test("the line is after the read mark, and nowhere if nothing is unread", () => {
  const { api } = recordingApi();
  const lineOf = (readUpTo: string | null, unreadCount: number) =>
    createReadState(api, "t", { readUpTo, unreadCount }).newAfter.get();
  expect(lineOf("5.000000", 3)).toBe("5.000000");
  expect(lineOf(null, 3)).toBe("0.000000");
  expect(lineOf("5.000000", 0)).toBeNull();
});

test("the read mark moves forward only, and at most once in a moment", () => {
  vi.useFakeTimers();
  const { api, moves } = recordingApi();
  const read = createReadState(api, "t", { readUpTo: "5.000000", unreadCount: 3 });
  for (const timestamp of ["4.000000", "6.000000", "7.000000", "6.500000"]) read.see(timestamp);
  expect(moves).toEqual([]);
  vi.advanceTimersByTime(1_000);
  expect(moves).toEqual(["7.000000"]);
  read.see("8.000000");
  read.stop();
  expect(moves).toEqual(["7.000000", "8.000000"]);
});

test("the line moves to what the viewer has seen", () => {
  const read = createReadState(recordingApi().api, "t", { readUpTo: "5.000000", unreadCount: 0 });
  read.see("6.000000");
  read.moveLine();
  expect(read.newAfter.get()).toBe("6.000000");
});
