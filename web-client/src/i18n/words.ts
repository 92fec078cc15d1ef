/** Every word the client shows, by language. Both dictionaries have the same keys: tsc sees to it. */
import { en } from "./en";
import { ja } from "./ja";

export type Word = keyof typeof en;
export type Language = "en" | "ja";

const DICTIONARIES: Record<Language, Record<Word, string>> = { en, ja };

/** The text of a word; `{name}` in it is replaced by the value of that name. */
export function say(language: Language, word: Word, values: Record<string, string | number> = {}): string {
  return DICTIONARIES[language][word].replace(/\{(\w+)\}/g, (all, name) => String(values[name] ?? all));
}
