/** The language and the theme that the user chose in this browser. The defaults are the browser's settings. */
import { useCallback } from "react";
import { type Language, type TextKey, translate } from "../i18n/texts";
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

/** Returns the current language, and a function that translates a text key into it. */
export function useTranslation(): { t: Translate; language: Language } {
  const currentLanguage = useValue(language);
  const t = useCallback<Translate>(
    (key, values) => translate(currentLanguage, key, values),
    [currentLanguage],
  );
  return { t, language: currentLanguage };
}
