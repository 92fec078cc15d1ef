import { describe, expect, test } from "vitest";
import {
  compareTimestamps,
  indexOfTimestamp,
  type TimelineWindow,
  windowOfPage,
  withItem,
  withNewerPage,
  withNewestItems,
  withOlderPage,
  withOldestItems,
  withoutItem,
} from "./window";

const item = (n: number) => ({ id: `m${n}`, timestamp: `1700000000.${String(n).padStart(6, "0")}` });
const page = (
  numbers: number[],
  hasOlder = false,
  hasNewer = false,
): TimelineWindow<ReturnType<typeof item>> => ({
  items: numbers.map(item),
  hasOlder,
  hasNewer,
});
const ids = (window: TimelineWindow<ReturnType<typeof item>>) => window.items.map(({ id }) => id).join(" ");

describe("timestamps", () => {
  test("are compared to the microsecond, which floats would lose", () => {
    expect(compareTimestamps("1700000000.000001", "1700000000.000002")).toBeLessThan(0);
    expect(compareTimestamps("9999999999.000001", "10000000000.000000")).toBeLessThan(0);
    expect(compareTimestamps("1.000000", "1.000000")).toBe(0);
  });
});

describe("a window", () => {
  test("is in ascending order whatever the order of its page", () => {
    expect(ids(windowOfPage(page([3, 2, 1])))).toBe("m1 m2 m3");
  });

  test("grows at its ends without duplicates, also when a page comes twice", () => {
    const older = withOlderPage(page([5, 6], true), page([4, 3, 5], false));
    expect(ids(older)).toBe("m3 m4 m5 m6");
    expect(older.hasOlder).toBe(false);
    expect(ids(withOlderPage(older, page([4, 3])))).toBe("m3 m4 m5 m6");
    const newer = withNewerPage(page([1, 2], false, true), page([2, 3]));
    expect(ids(newer)).toBe("m1 m2 m3");
    expect(newer.hasNewer).toBe(false);
  });

  test("adds a new item at its end only when it reaches the timeline's end", () => {
    expect(ids(withItem(page([1, 2]), item(3)))).toBe("m1 m2 m3");
    expect(ids(withItem(page([1, 2], false, true), item(3)))).toBe("m1 m2");
  });

  test("inserts a late item in order, and ignores items before its beginning", () => {
    expect(ids(withItem(page([1, 3]), item(2)))).toBe("m1 m2 m3");
    expect(ids(withItem(page([2, 3], true), item(1)))).toBe("m2 m3");
    expect(ids(withItem(page([]), item(1)))).toBe("m1");
  });

  test("replaces an item that it has", () => {
    const changed = { ...item(2), text: "new" };
    expect(withItem(page([1, 2, 3]), changed).items[1]).toBe(changed);
  });

  test("removes an item; removing an unknown one changes nothing", () => {
    const window = page([1, 2]);
    expect(ids(withoutItem(window, "m1"))).toBe("m2");
    expect(withoutItem(window, "m9")).toBe(window);
  });

  test("says that there are more items beyond the end where it was trimmed", () => {
    const newest = withNewestItems(page([1, 2, 3]), 2);
    expect([ids(newest), newest.hasOlder]).toEqual(["m2 m3", true]);
    const oldest = withOldestItems(page([1, 2, 3]), 2);
    expect([ids(oldest), oldest.hasNewer]).toEqual(["m1 m2", true]);
  });

  test("finds the position of a timestamp without an item", () => {
    expect(indexOfTimestamp(page([1, 3]).items, item(2).timestamp)).toBe(1);
    expect(indexOfTimestamp(page([1, 3]).items, item(9).timestamp)).toBe(2);
  });
});
