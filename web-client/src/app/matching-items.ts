/** Matches items against a search text. */

/** Returns the items that contain every word, those that begin with the first word before the others. */
export function matchingItems<T>(items: readonly T[], query: string, textOf: (item: T) => string): T[] {
  const words = query.toLowerCase().normalize("NFKC").split(/\s+/).filter(Boolean);
  const read = (item: T) => textOf(item).toLowerCase().normalize("NFKC");
  const matching = items.filter((item) => words.every((word) => read(item).includes(word)));
  const begins = (item: T) => (words[0] !== undefined && read(item).startsWith(words[0]) ? 0 : 1);
  return matching.sort((a, b) => begins(a) - begins(b));
}
