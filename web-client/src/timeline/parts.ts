/** A list that comes in parts, each after the last item of the one before, kept up to date to its end. */

export interface Part<Item> {
  items: readonly Item[];
  /** Whether there may be more after it. */
  full: boolean;
}

/** Tells each part, at first and whenever it changes, until the returned function is called. */
export type Listen<Item> = (after: string | null, heard: (part: Part<Item>) => void) => () => void;

/**
 * Follows the whole list: `told` gets all that is known whenever a part comes or changes. A part that ends with another
 * item than before has everything after it asked for anew; meanwhile the parts that were known stay.
 */
export function followParts<Item extends { id: string }>(
  listen: Listen<Item>,
  told: (items: readonly Item[]) => void,
): () => void {
  return follow(listen, null, told);
}

function follow<Item extends { id: string }>(
  listen: Listen<Item>,
  after: string | null,
  told: (items: readonly Item[]) => void,
): () => void {
  let items: readonly Item[] = [];
  let rest: readonly Item[] = [];
  let restAfter: string | null = null;
  let stopRest = () => {};
  const stop = listen(after, (part) => {
    items = part.items;
    const last = part.full ? (items.at(-1)?.id ?? null) : null;
    const moved = last !== restAfter;
    restAfter = last;
    if (moved) {
      stopRest();
      stopRest = () => {};
      if (last === null) rest = [];
    }
    tell();
    if (moved && last !== null) stopRest = follow(listen, last, goOn);
  });
  function goOn(known: readonly Item[]): void {
    rest = known;
    tell();
  }
  // While the parts move along, an item may stand in two of them.
  function tell(): void {
    const ids = new Set(items.map(({ id }) => id));
    told([...items, ...rest.filter(({ id }) => !ids.has(id))]);
  }
  return () => {
    stop();
    stopRest();
  };
}
