/** The language and the theme that the user chose in this browser. The defaults are the browser's settings. */
import { useCallback } from "react";
import { type Language, loadTexts, type TextKey, translate } from "../i18n/texts";
import { createValue, useValue } from "./value";

export type Theme = "system" | "light" | "dark";

const LANGUAGE_KEY = "noroshi.language";
const THEME_KEY = "noroshi.theme";

export const language = createValue<Language>(storedLanguage());
export const theme = createValue<Theme>((localStorage.getItem(THEME_KEY) as Theme | null) ?? "system");

function storedLanguage(): Language {
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
  void showLanguage(chosen);
}

/** Changes the language once its texts are loaded, unless another one was chosen meanwhile. */
async function showLanguage(chosen: Language): Promise<void> {
  await loadTexts(chosen);
  if (storedLanguage() === chosen) language.set(chosen);
}

export function chooseTheme(chosen: Theme): void {
  localStorage.setItem(THEME_KEY, chosen);
  theme.set(chosen);
}

/** Applies the language and the theme to the page, now and after each change. Ends when the texts are loaded. */
export async function applyPreferences(): Promise<void> {
  language.watch(applyLanguage);
  theme.watch(applyTheme);
  applyLanguage();
  applyTheme();
  addEventListener("storage", followOtherTab);
  await loadTexts(language.get());
}

/** Applies what the user chose in another tab. */
function followOtherTab({ key, newValue }: StorageEvent): void {
  if (key === LANGUAGE_KEY && (newValue === "en" || newValue === "ja")) void showLanguage(newValue);
  if (key === THEME_KEY && newValue !== null) theme.set(newValue as Theme);
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
