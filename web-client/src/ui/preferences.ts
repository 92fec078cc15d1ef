/** Language and theme, stored in this browser; the browser's own by default. */
import { useCallback } from "react";
import { type Language, translate, type Word } from "../i18n/words";
import { createValue, useValue } from "./value";

export type Theme = "system" | "light" | "dark";

const LANGUAGE_KEY = "noroshi.language";
const THEME_KEY = "noroshi.theme";

export const language = createValue<Language>(chosenLanguage());
export const theme = createValue<Theme>((localStorage.getItem(THEME_KEY) as Theme | null) ?? "system");

function chosenLanguage(): Language {
  const chosen = localStorage.getItem(LANGUAGE_KEY);
  if (chosen === "en" || chosen === "ja") return chosen;
  return navigator.language.startsWith("ja") ? "ja" : "en";
}

function showLanguage(): void {
  document.documentElement.lang = language.get();
}

function showTheme(): void {
  document.documentElement.dataset.theme = theme.get();
}

export function chooseLanguage(chosen: Language): void {
  localStorage.setItem(LANGUAGE_KEY, chosen);
  language.set(chosen);
}

export function chooseTheme(chosen: Theme): void {
  localStorage.setItem(THEME_KEY, chosen);
  theme.set(chosen);
}

/** Applies the language and the theme to the page, now and after each change. */
export function showPreferences(): void {
  language.watch(showLanguage);
  theme.watch(showTheme);
  showLanguage();
  showTheme();
}

export type Translate = (word: Word, values?: Record<string, string | number>) => string;

/** Returns the messages in the chosen language. */
export function useWords(): { t: Translate; language: Language } {
  const chosen = useValue(language);
  const t = useCallback<Translate>((word, values) => translate(chosen, word, values), [chosen]);
  return { t, language: chosen };
}
