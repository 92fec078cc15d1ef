/** The texts of the loaded languages. The texts of a language are loaded when somebody first uses it. */
import type { en } from "./en";
import type { mailDecisions } from "./en/mail-decisions";
import type { webhooks } from "./en/webhooks";

export type Language = "en" | "ja";
/** A text, or a text for each plural form, selected by the value `count`. */
export type Text = string | { one: string; other: string };
export type TextKey = keyof typeof en | keyof typeof mailDecisions | keyof typeof webhooks;
/** The texts of a language that every screen has. tsc checks that each language has the keys of English. */
export type Catalogue = Record<keyof typeof en, Text>;

const IMPORTS: Record<Language, () => Promise<Catalogue>> = {
  en: () => import("./en").then((module) => module.en),
  ja: () => import("./ja").then((module) => module.ja),
};

const catalogues = new Map<Language, Catalogue>();
const screenTexts: Record<Language, Partial<Record<TextKey, Text>>> = { en: {}, ja: {} };

const PLURAL_RULES = { en: new Intl.PluralRules("en"), ja: new Intl.PluralRules("ja") };

/** Loads the texts of a language, which `translate` needs. */
export async function loadTexts(language: Language): Promise<Catalogue> {
  const catalogue = catalogues.get(language) ?? (await IMPORTS[language]());
  catalogues.set(language, catalogue);
  return catalogue;
}

/** Adds the texts of a screen. Its script calls this when it is loaded. */
export function addTexts(texts: Record<Language, Partial<Record<TextKey, Text>>>): void {
  for (const language of ["en", "ja"] as const) Object.assign(screenTexts[language], texts[language]);
}

/** Returns the keys of the texts that every screen has; none before a language is loaded. */
export function textKeys(): TextKey[] {
  const [catalogue] = catalogues.values();
  return Object.keys(catalogue ?? {}) as TextKey[];
}

/**
 * Returns the text of a key. `{name}` is replaced by the value of that name; numbers are formatted for the language.
 */
export function translate(
  language: Language,
  key: TextKey,
  values: Record<string, string | number> = {},
): string {
  const catalogue: Partial<Record<TextKey, Text>> = catalogues.get(language) ?? {};
  const text = catalogue[key] ?? screenTexts[language][key];
  if (text === undefined) throw new Error(`The text ${key} is not loaded in the language ${language}.`);
  const form = typeof text === "string" ? text : text[pluralForm(language, values.count)];
  return form.replace(/\{(\w+)\}/g, (placeholder, name) => {
    const value = values[name];
    return typeof value === "number" ? value.toLocaleString(language) : (value ?? placeholder);
  });
}

function pluralForm(language: Language, count: unknown): "one" | "other" {
  return PLURAL_RULES[language].select(Number(count)) === "one" ? "one" : "other";
}
