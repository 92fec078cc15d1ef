/** Language and theme, stored in this browser; the browser's own by default. */
import { useCallback } from "react";
import { type Language, translate, type TextKey } from "../i18n/words";
import { createValue, useValue } from "./value";

export type Theme = "system" | "light" | "dark";

const LANGUAGE_KEY = "noroshi.language";
const THEME_KEY = "noroshi.theme";

export const language = createValue<Language>(initialLanguage());
export const theme = createValue<Theme>((localStorage.getItem(THEME_KEY) as Theme | null) ?? "system");

function initialLanguage(): Language {
  const chosen = localStorage.getItem(LANGUAGE_KEY);
  if (chosen === "en" || chosen === "ja") return chosen;
  return navigator.language.startsWith("ja") ? "ja" : "en";
}

function applyLanguage(): void {
  document.documentElement.lang = language.get();
}

function applyTheme(): void {
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
export function applyPreferences(): void {
  language.watch(applyLanguage);
  theme.watch(applyTheme);
  applyLanguage();
  applyTheme();
}

export type Translate = (key: TextKey, values?: Record<string, string | number>) => string;

/** Returns the messages in the chosen language. */
export function useTranslation(): { t: Translate; language: Language } {
  const currentLanguage = useValue(language);
  const t = useCallback<Translate>((key, values) => translate(currentLanguage, key, values), [currentLanguage]);
  return { t, language: currentLanguage };
}
