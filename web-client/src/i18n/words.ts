/** Message catalogues by language. Both have the same keys; tsc checks it. */
import { en } from "./en";
import { ja } from "./ja";

export type Language = "en" | "ja";
/** A text, or one for each plural form, chosen by `count`. */
export type Text = string | { one: string; other: string };
export type Word = keyof typeof en;

export const DICTIONARIES: Record<Language, Record<Word, Text>> = { en, ja };

const PLURALS = { en: new Intl.PluralRules("en"), ja: new Intl.PluralRules("ja") };

/** Returns a message; `{name}` is replaced by the value of that name, with numbers formatted for the language. */
export function translate(
  language: Language,
  word: Word,
  values: Record<string, string | number> = {},
): string {
  const text = DICTIONARIES[language][word];
  const chosen = typeof text === "string" ? text : text[formOf(language, values.count)];
  return chosen.replace(/\{(\w+)\}/g, (all, name) => {
    const value = values[name];
    return typeof value === "number" ? value.toLocaleString(language) : (value ?? all);
  });
}

function formOf(language: Language, count: unknown): "one" | "other" {
  return PLURALS[language].select(Number(count)) === "one" ? "one" : "other";
}
