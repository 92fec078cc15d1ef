/** The catalogues of texts, one per language. tsc checks that both have the same keys. */
import { en } from "./en";
import { ja } from "./ja";

export type Language = "en" | "ja";
/** A text, or a text for each plural form, selected by the value `count`. */
export type Text = string | { one: string; other: string };
export type TextKey = keyof typeof en;

export const CATALOGUES: Record<Language, Record<TextKey, Text>> = { en, ja };

const PLURAL_RULES = { en: new Intl.PluralRules("en"), ja: new Intl.PluralRules("ja") };

/**
 * Returns the text of a key. `{name}` is replaced by the value of that name; numbers are formatted for the language.
 */
export function translate(
  language: Language,
  key: TextKey,
  values: Record<string, string | number> = {},
): string {
  const text = CATALOGUES[language][key];
  const form = typeof text === "string" ? text : text[pluralForm(language, values.count)];
  return form.replace(/\{(\w+)\}/g, (placeholder, name) => {
    const value = values[name];
    return typeof value === "number" ? value.toLocaleString(language) : (value ?? placeholder);
  });
}

function pluralForm(language: Language, count: unknown): "one" | "other" {
  return PLURAL_RULES[language].select(Number(count)) === "one" ? "one" : "other";
}
