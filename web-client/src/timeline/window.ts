/**
 * A window is a gapless part of a timeline, oldest item first. Pages extend a window at its ends, events change its
 * items. No function modifies its arguments, and repeating a page or an event changes nothing. A function that changes
 * a single item returns the same object if the change does not concern the window.
 */

export interface TimelineItem {
  id: string;
  timestamp: string;
}

export interface TimelineWindow<Item extends TimelineItem> {
  items: readonly Item[];
  hasOlder: boolean;
  hasNewer: boolean;
}

/** Compares two timestamps: negative if `a` is earlier. Compares strings, because a float loses microseconds. */
export function compareTimestamps(a: string, b: string): number {
  if (a === b) return 0;
  const lengthDifference = a.length - b.length;
  if (lengthDifference !== 0) return lengthDifference;
  return a < b ? -1 : 1;
}

const byTime = (a: TimelineItem, b: TimelineItem) => compareTimestamps(a.timestamp, b.timestamp);

/** Returns a window of one page. The page's items may be in any order. */
export function windowOfPage<Item extends TimelineItem>(page: TimelineWindow<Item>): TimelineWindow<Item> {
  return { ...page, items: [...page.items].sort(byTime) };
}

/** Returns the window extended by the page before its first item. */
export function withOlderPage<Item extends TimelineItem>(
  window: TimelineWindow<Item>,
  page: TimelineWindow<Item>,
): TimelineWindow<Item> {
  const first = window.items[0];
  const older = page.items.filter(
    (item) => first === undefined || compareTimestamps(item.timestamp, first.timestamp) < 0,
  );
  return { ...window, items: [...older.sort(byTime), ...window.items], hasOlder: page.hasOlder };
}

/** Returns the window extended by the page after its last item. */
export function withNewerPage<Item extends TimelineItem>(
  window: TimelineWindow<Item>,
  page: TimelineWindow<Item>,
): TimelineWindow<Item> {
  const last = window.items.at(-1);
  const newer = page.items.filter(
    (item) => last === undefined || compareTimestamps(item.timestamp, last.timestamp) > 0,
  );
  return { ...window, items: [...window.items, ...newer.sort(byTime)], hasNewer: page.hasNewer };
}

/**
 * Returns the window with a new or changed item. An item beyond an end of the window is added only if the timeline has
 * no other items there (`hasOlder`, `hasNewer`). Otherwise it is ignored.
 */
export function withItem<Item extends TimelineItem>(
  window: TimelineWindow<Item>,
  item: Item,
): TimelineWindow<Item> {
  const { items } = window;
  const index = indexOfTimestamp(items, item.timestamp);
  if (items[index]?.id === item.id) return { ...window, items: items.with(index, item) };
  if (index === items.length && window.hasNewer) return window;
  if (index === 0 && window.hasOlder) return window;
  return { ...window, items: items.toSpliced(index, 0, item) };
}

/** Returns the window with `change` applied to the item with the id, if the window has it. */
export function withChangedItem<Item extends TimelineItem>(
  window: TimelineWindow<Item>,
  id: string,
  change: (item: Item) => Item,
): TimelineWindow<Item> {
  const index = window.items.findIndex((item) => item.id === id);
  const item = window.items[index];
  return item === undefined ? window : { ...window, items: window.items.with(index, change(item)) };
}

export function withoutItem<Item extends TimelineItem>(
  window: TimelineWindow<Item>,
  id: string,
): TimelineWindow<Item> {
  const items = window.items.filter((item) => item.id !== id);
  return items.length === window.items.length ? window : { ...window, items };
}

/** Returns the window trimmed to its newest `maxCount` items. */
export function withNewestItems<Item extends TimelineItem>(
  window: TimelineWindow<Item>,
  maxCount: number,
): TimelineWindow<Item> {
  if (window.items.length <= maxCount) return window;
  return { ...window, items: window.items.slice(-maxCount), hasOlder: true };
}

/** Returns the window trimmed to its oldest `maxCount` items. */
export function withOldestItems<Item extends TimelineItem>(
  window: TimelineWindow<Item>,
  maxCount: number,
): TimelineWindow<Item> {
  if (window.items.length <= maxCount) return window;
  return { ...window, items: window.items.slice(0, maxCount), hasNewer: true };
}

/** Returns the index of the first item at or after a timestamp; the number of items when all are earlier. */
export function indexOfTimestamp(items: readonly TimelineItem[], timestamp: string): number {
  let low = 0;
  let high = items.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (compareTimestamps((items[middle] as TimelineItem).timestamp, timestamp) < 0) low = middle + 1;
    else high = middle;
  }
  return low;
}
