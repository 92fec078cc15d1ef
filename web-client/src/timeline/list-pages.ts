/** A list that is loaded in pages, each after the last item of the one before, and kept up to date. */

export interface ListPage<Item> {
  items: readonly Item[];
  /** Whether there may be more after it. */
  full: boolean;
}

/** Calls `onPart` with a page, at first and whenever it changes, until the returned function is called. */
export type WatchPage<Item> = (after: string | null, onPart: (part: ListPage<Item>) => void) => () => void;

/**
 * Watches the whole list: calls `onItems` with all loaded items whenever a page arrives or changes. When a page's last
 * item changes, all later pages are loaded again. The old pages stay until then.
 */
export function watchPages<Item extends { id: string }>(
  listen: WatchPage<Item>,
  onItems: (items: readonly Item[]) => void,
): () => void {
  return watchFrom(listen, null, onItems);
}

function watchFrom<Item extends { id: string }>(
  listen: WatchPage<Item>,
  after: string | null,
  onItems: (items: readonly Item[]) => void,
): () => void {
  let items: readonly Item[] = [];
  let rest: readonly Item[] = [];
  let restAfter: string | null = null;
  let stopRest = () => {};
  const stop = listen(after, (part) => {
    items = part.items;
    const last = part.full ? (items.at(-1)?.id ?? null) : null;
    const isNewEnd = last !== restAfter;
    restAfter = last;
    if (isNewEnd) {
      stopRest();
      stopRest = () => {};
      if (last === null) rest = [];
    }
    emit();
    if (isNewEnd && last !== null) stopRest = watchFrom(listen, last, setRest);
  });
  function setRest(current: readonly Item[]): void {
    rest = current;
    emit();
  }
  // While pages are reloaded, two of them may contain the same item.
  function emit(): void {
    const ids = new Set(items.map(({ id }) => id));
    onItems([...items, ...rest.filter(({ id }) => !ids.has(id))]);
  }
  return () => {
    stop();
    stopRest();
  };
}
