/** A list that is loaded page by page, each after the last item of the previous page. */

export const PAGE_SIZE = 50;

export interface PagedItems<Item> {
  items: readonly Item[];
  /** Whether the last page was full, so that another page may follow. */
  hasMore: boolean;
}

/** Returns the list that begins with this page. */
export function firstPage<Item>(page: readonly Item[]): PagedItems<Item> {
  return { items: page, hasMore: page.length === PAGE_SIZE };
}

/** Returns the list with the next page at its end. */
export function withNextPage<Item>({ items }: PagedItems<Item>, page: readonly Item[]): PagedItems<Item> {
  return { items: [...items, ...page], hasMore: page.length === PAGE_SIZE };
}

/**
 * Returns the list with the newest page, read again, at its start. If the page has none of the known items, items
 * between them may be missing, so that the list begins anew.
 */
export function withNewestPage<Item>(
  list: PagedItems<Item>,
  page: readonly Item[],
  keyOf: (item: Item) => string,
): PagedItems<Item> {
  const keys = new Set(page.map(keyOf));
  const older = list.items.filter((item) => !keys.has(keyOf(item)));
  if (older.length === list.items.length && page.length === PAGE_SIZE) return firstPage(page);
  return { items: [...page, ...older], hasMore: list.hasMore };
}

/** Returns the list with an item replaced, or removed if `change` returns null. */
export function withChange<Item>(
  list: PagedItems<Item>,
  change: (item: Item) => Item | null,
): PagedItems<Item> {
  return { ...list, items: list.items.map(change).filter((item) => item !== null) };
}
