/** All emojis of Unicode with their names in one language. They are loaded when a picker opens for the first time. */
import type { Language } from "../i18n/texts";

export interface Emoji {
  /** The text of the reaction: an emoji of Unicode, or the name of a stamp between colons. */
  unicode: string;
  label: string;
  tags?: string[];
  /** Number of the group in Unicode's data; absent for parts of other emojis. */
  group?: number;
  /** Path of the picture of a stamp of the organization; absent for emojis of Unicode. */
  imageUrl?: string;
}

/** The group of the stamps of the organization, which Unicode's data do not have. */
export const OWN_GROUP = -1;

/** The groups that a picker shows, each with an emoji that stands for it. Parts of other emojis have the number 2. */
export const GROUPS = [
  { group: 0, symbol: "😀", textKey: "emoji.smileys" },
  { group: 1, symbol: "👋", textKey: "emoji.people" },
  { group: 3, symbol: "🐻", textKey: "emoji.nature" },
  { group: 4, symbol: "🍜", textKey: "emoji.food" },
  { group: 5, symbol: "🚄", textKey: "emoji.travel" },
  { group: 6, symbol: "⚽", textKey: "emoji.activities" },
  { group: 7, symbol: "💡", textKey: "emoji.objects" },
  { group: 8, symbol: "✅", textKey: "emoji.symbols" },
  { group: 9, symbol: "🏁", textKey: "emoji.flags" },
] as const;

/** A variation selector that Unicode's fully qualified form does not have, but the data. */
const NEEDLESS_SELECTOR = /(\p{Emoji_Presentation})\uFE0F/gu;

export async function loadEmojis(language: Language): Promise<readonly Emoji[]> {
  const { default: all } =
    language === "ja"
      ? await import("emojibase-data/ja/compact.json")
      : await import("emojibase-data/en/compact.json");
  const shown = new Set<number | undefined>(GROUPS.map(({ group }) => group));
  return (all as Emoji[])
    .filter(({ group }) => shown.has(group))
    .map((each) => ({ ...each, unicode: each.unicode.replace(NEEDLESS_SELECTOR, "$1") }));
}
