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
 * Loads the page after the list's last item. If the list has another last item by then, loads the page after that one.
 * Returns the list with the page at its end; null if there is no list, or it is empty.
 */
export async function loadNextPage<Item>(
  currentList: () => PagedItems<Item> | null,
  loadPage: (after: Item) => Promise<readonly Item[]>,
  keyOf: (item: Item) => string,
): Promise<PagedItems<Item> | null> {
  for (;;) {
    const last = currentList()?.items.at(-1);
    if (last === undefined) return null;
    const page = await loadPage(last);
    const list = currentList();
    const newLast = list?.items.at(-1);
    if (list && newLast && keyOf(newLast) === keyOf(last)) return withNextPage(list, page);
  }
}

/**
 * Returns the list with its first page, loaded again, at the start. If the page is full and has none of the known
 * items, items between the page and the known items may be missing. Then the list begins anew with the page.
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
