/**
 * A window onto a timeline: a gapless run of its items, oldest first. Pages extend it at its ends, events change its
 * items. Every function returns a new window, or the same one when nothing changed, and is idempotent.
 */

export interface Entry {
  id: string;
  timestamp: string;
}

export interface Window<Item extends Entry> {
  items: readonly Item[];
  hasOlder: boolean;
  hasNewer: boolean;
}

/** Negative when `a` is the earlier timestamp. Compares digits, because floats lose microseconds. */
export function compare(a: string, b: string): number {
  if (a === b) return 0;
  const shorter = a.length - b.length;
  if (shorter !== 0) return shorter;
  return a < b ? -1 : 1;
}

const byTime = (a: Entry, b: Entry) => compare(a.timestamp, b.timestamp);

/** Returns a window of one page, whose items may be in any order. */
export function windowOf<Item extends Entry>(page: Window<Item>): Window<Item> {
  return { ...page, items: [...page.items].sort(byTime) };
}

/** Returns the window extended by the page before its first item. */
export function withOlder<Item extends Entry>(window: Window<Item>, page: Window<Item>): Window<Item> {
  const first = window.items[0];
  const older = page.items.filter(
    (item) => first === undefined || compare(item.timestamp, first.timestamp) < 0,
  );
  return { ...window, items: [...older.sort(byTime), ...window.items], hasOlder: page.hasOlder };
}

/** Returns the window extended by the page after its last item. */
export function withNewer<Item extends Entry>(window: Window<Item>, page: Window<Item>): Window<Item> {
  const last = window.items.at(-1);
  const newer = page.items.filter(
    (item) => last === undefined || compare(item.timestamp, last.timestamp) > 0,
  );
  return { ...window, items: [...window.items, ...newer.sort(byTime)], hasNewer: page.hasNewer };
}

/**
 * Returns the window with a new or changed item. An item outside the window's range is ignored, except after the last
 * item of a window that reaches the timeline's end.
 */
export function withItem<Item extends Entry>(window: Window<Item>, item: Item): Window<Item> {
  const { items } = window;
  const place = indexOfTimestamp(items, item.timestamp);
  if (items[place]?.id === item.id) return { ...window, items: items.with(place, item) };
  if (place === items.length && window.hasNewer) return window;
  if (place === 0 && window.hasOlder) return window;
  return { ...window, items: items.toSpliced(place, 0, item) };
}

/** Returns the window with `change` applied to the item of that id, if present. */
export function withChangedItem<Item extends Entry>(
  window: Window<Item>,
  id: string,
  change: (item: Item) => Item,
): Window<Item> {
  const place = window.items.findIndex((item) => item.id === id);
  const item = window.items[place];
  return item === undefined ? window : { ...window, items: window.items.with(place, change(item)) };
}

export function withoutItem<Item extends Entry>(window: Window<Item>, id: string): Window<Item> {
  const items = window.items.filter((item) => item.id !== id);
  return items.length === window.items.length ? window : { ...window, items };
}

/** Returns the newest `most` items. */
export function newestOf<Item extends Entry>(window: Window<Item>, most: number): Window<Item> {
  if (window.items.length <= most) return window;
  return { ...window, items: window.items.slice(-most), hasOlder: true };
}

/** Returns the oldest `most` items. */
export function oldestOf<Item extends Entry>(window: Window<Item>, most: number): Window<Item> {
  if (window.items.length <= most) return window;
  return { ...window, items: window.items.slice(0, most), hasNewer: true };
}

/** Returns the index of the first item at or after a timestamp; the length when all are earlier. */
export function indexOfTimestamp(items: readonly Entry[], timestamp: string): number {
  let low = 0;
  let high = items.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (compare((items[middle] as Entry).timestamp, timestamp) < 0) low = middle + 1;
    else high = middle;
  }
  return low;
}
