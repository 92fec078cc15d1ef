/** The choice of the language. */
import { chooseLanguage, useTranslation } from "./preferences";

export function LanguageSelect() {
  const { t, language } = useTranslation();
  return (
    <fieldset className="flex gap-1" aria-label={t("language")}>
      {(["en", "ja"] as const).map((code) => (
        <button
          key={code}
          type="button"
          lang={code}
          aria-pressed={language === code}
          onClick={() => chooseLanguage(code)}
          className="min-h-9 rounded-full border border-transparent px-3 text-sm aria-pressed:border-current"
        >
          {code === "en" ? "English" : "日本語"}
        </button>
      ))}
    </fieldset>
  );
}
