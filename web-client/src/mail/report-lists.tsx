/** The bounces of an address, and the decisions of operators about it and its domain. */
import { dateAndTime } from "../i18n/times";
import { useTranslation } from "../ui/preferences";
import type { Report } from "./decision-operations";

export function ReportBounces({ bounces }: Pick<Report, "bounces">) {
  const { t, language } = useTranslation();
  return (
    <section aria-label={t("mailReport.bounces")}>
      <h3 className="mb-1 font-semibold">{t("mailReport.bounces")}</h3>
      {bounces.length === 0 && <p className="text-quiet">{t("mailReport.noBounces")}</p>}
      <ul>
        {bounces.map(({ at, bounceClass, code, source, count }) => (
          <li key={`${at} ${bounceClass} ${code} ${source}`} className="border-t border-line py-2">
            <p className="flex flex-wrap gap-x-3">
              <span className="font-medium">{t(`bounce.${bounceClass}`)}</span>
              {code && <span lang="en">{code}</span>}
              {count > 1 && <span className="tabular-nums">× {count.toLocaleString(language)}</span>}
            </p>
            <p className="flex flex-wrap gap-x-3 break-all text-sm text-quiet">
              <time dateTime={at}>{dateAndTime(language, new Date(at))}</time>
              <span>
                {t("mailReport.source")}: {source}
              </span>
            </p>
          </li>
        ))}
      </ul>
    </section>
  );
}

export function ReportChanges({ changes }: Pick<Report, "changes">) {
  const { t, language } = useTranslation();
  const nameOf = ({ by, byId }: Report["changes"][number]) =>
    by?.name ?? t(byId === "command-line" ? "mailReport.commandLine" : "mailReport.erased");
  return (
    <section aria-label={t("mailReport.changes")}>
      <h3 className="mb-1 font-semibold">{t("mailReport.changes")}</h3>
      {changes.length === 0 && <p className="text-quiet">{t("mailReport.noChanges")}</p>}
      <ol>
        {changes.map((change) => (
          <li key={change.id} className="border-t border-line py-2">
            <p className="flex flex-wrap gap-x-3">
              <span className="font-medium">{t(`mailChange.${change.kind}`)}</span>
              {change.domain && <span className="break-all">{change.domain}</span>}
            </p>
            {change.reason && <p className="break-words">{change.reason}</p>}
            <p className="flex flex-wrap gap-x-3 text-sm text-quiet">
              <span>{nameOf(change)}</span>
              <time dateTime={change.at}>{dateAndTime(language, new Date(change.at))}</time>
            </p>
          </li>
        ))}
      </ol>
    </section>
  );
}
