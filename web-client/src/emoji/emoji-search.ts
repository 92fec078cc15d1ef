/** Finds emojis by words of their names. */
import type { Emoji } from "./emoji-data";

/** More are not shown, since another letter narrows the search. */
const FOUND_MAX = 64;

/** Returns the emojis with all words of the query in their names; those whose own name matches come first. */
export function findEmojis(emojis: readonly Emoji[], query: string): Emoji[] {
  const words = query.toLowerCase().split(/\s+/).filter(Boolean);
  if (words.length === 0) return [];
  const matches = (text: string) => words.every((word) => text.includes(word));
  const byName = emojis.filter(({ label }) => matches(label.toLowerCase()));
  const byTag = emojis.filter(
    (each) => !byName.includes(each) && matches([each.label, ...(each.tags ?? [])].join(" ").toLowerCase()),
  );
  return [...byName, ...byTag].slice(0, FOUND_MAX);
}
