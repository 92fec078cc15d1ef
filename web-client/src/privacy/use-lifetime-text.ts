/** The text for how long data are kept. */
import { useTranslation } from "../ui/preferences";

/** Returns a function that returns the text for a number of days. Null means that data are kept for good. */
export function useLifetimeText() {
  const { t } = useTranslation();
  return (days: number | null) =>
    days === null ? t("retention.forGood") : t("retention.forDays", { count: days });
}
