/**
 * Returns the items whose text contains every word of the query. Items that begin with the query's first word come
 * first.
 */
export function matchingItems<T>(items: readonly T[], query: string, textOf: (item: T) => string): T[] {
  const words = query.toLowerCase().normalize("NFKC").split(/\s+/).filter(Boolean);
  const normalized = (item: T) => textOf(item).toLowerCase().normalize("NFKC");
  const matching = items.filter((item) => words.every((word) => normalized(item).includes(word)));
  const rank = (item: T) => (words[0] !== undefined && normalized(item).startsWith(words[0]) ? 0 : 1);
  return matching.sort((a, b) => rank(a) - rank(b));
}
