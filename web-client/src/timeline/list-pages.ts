/** Loads a list page by page, each after the last item of the previous page, and keeps all pages up to date. */

export interface ListPage<Item> {
  items: readonly Item[];
  /** Whether the page has as many items as were requested, so that another page may follow. */
  isFull: boolean;
}

/**
 * Calls `onPage` with the page after an item (null: the first page), once it is loaded and whenever it changes.
 * Returns a function that ends the calls.
 */
export type WatchPage<Item> = (after: string | null, onPage: (page: ListPage<Item>) => void) => () => void;

/**
 * Watches the whole list: calls `onItems` with all loaded items whenever a page arrives or changes. When a page's last
 * item changes, all later pages are loaded again. Until they arrive, their old items stay. Returns a function that
 * ends the calls.
 */
export function watchPages<Item extends { id: string }>(
  watchPage: WatchPage<Item>,
  onItems: (items: readonly Item[]) => void,
): () => void {
  return watchFrom(watchPage, null, onItems);
}

/** Watches the part of the list after an item. */
function watchFrom<Item extends { id: string }>(
  watchPage: WatchPage<Item>,
  after: string | null,
  onItems: (items: readonly Item[]) => void,
): () => void {
  let items: readonly Item[] = [];
  let laterItems: readonly Item[] = [];
  let laterItemsAfter: string | null = null;
  let stopLaterPages = () => {};
  const stopPage = watchPage(after, (page) => {
    items = page.items;
    // Null if no page follows.
    const lastId = page.isFull ? (items.at(-1)?.id ?? null) : null;
    const hasNewEnd = lastId !== laterItemsAfter;
    laterItemsAfter = lastId;
    if (hasNewEnd) {
      stopLaterPages();
      stopLaterPages = () => {};
      if (lastId === null) laterItems = [];
    }
    emit();
    if (hasNewEnd && lastId !== null) stopLaterPages = watchFrom(watchPage, lastId, setLaterItems);
  });
  function setLaterItems(current: readonly Item[]): void {
    laterItems = current;
    emit();
  }
  function emit(): void {
    // While later pages are being loaded again, their old items may also be in this page.
    const ids = new Set(items.map(({ id }) => id));
    onItems([...items, ...laterItems.filter(({ id }) => !ids.has(id))]);
  }
  return () => {
    stopPage();
    stopLaterPages();
  };
}
