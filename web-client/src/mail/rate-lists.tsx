/** Beside the chart of bounce rates: the domains with the most bounces of a day, and the alarms. */
import { useEffect, useState } from "react";
import { request, useApi } from "../api/api";
import type { ResultOf } from "../api/graphql";
import { useTranslation } from "../ui/preferences";
import { notifyFailure } from "../ui/toasts";
import { BounceAlarms, WorstDomains } from "./operations";
import { ALARM_RATE } from "./rate-chart";

/** `day` is the UTC day; null if no mail was sent. */
export function WorstDomainList({ day }: { day: string | null }) {
  const { t, language } = useTranslation();
  const { direct } = useApi();
  const [domains, setDomains] = useState<ResultOf<typeof WorstDomains>["worstDomains"]>([]);
  useEffect(() => {
    if (day === null) return;
    let isCurrent = true;
    request(direct, WorstDomains, { day }).then(
      ({ worstDomains }) => isCurrent && setDomains(worstDomains),
      notifyFailure,
    );
    return () => {
      isCurrent = false;
    };
  }, [direct, day]);
  const percent = new Intl.NumberFormat(language, { style: "percent", maximumFractionDigits: 2 });
  if (day === null) return null;
  const title = t("mailRates.worst", { day: dayText(language, day) });
  return (
    <section aria-label={title} className="mt-8" data-testid="worst-domains">
      <h2 className="border-b border-line pb-2 font-semibold">{title}</h2>
      {domains.length === 0 && <p className="py-2 text-quiet">{t("mailRates.worstNone")}</p>}
      <ul>
        {domains.map(({ domain, sent, bounced, rate }) => (
          <li key={domain} className="flex flex-wrap gap-x-4 border-b border-line py-2 tabular-nums">
            <span className="min-w-0 grow break-all font-medium">{domain}</span>
            <span className="text-quiet">{t("mail.ratesSum", { bounced, sent })}</span>
            <span className={rate >= ALARM_RATE ? "font-semibold text-bad" : ""}>{percent.format(rate)}</span>
          </li>
        ))}
      </ul>
    </section>
  );
}

export function RateAlarms() {
  const { t, language } = useTranslation();
  const { direct } = useApi();
  const [alarms, setAlarms] = useState<ResultOf<typeof BounceAlarms>["bounceAlarms"]>([]);
  useEffect(() => {
    request(direct, BounceAlarms, {}).then(({ bounceAlarms }) => setAlarms(bounceAlarms), notifyFailure);
  }, [direct]);
  return (
    <section aria-label={t("mailRates.alarms")} className="mt-8" data-testid="bounce-alarms">
      <h2 className="border-b border-line pb-2 font-semibold">{t("mailRates.alarms")}</h2>
      {alarms.length === 0 && <p className="py-2 text-quiet">{t("mailRates.alarmsNone")}</p>}
      <ul>
        {alarms.map(({ day, domain, sentAt }) => (
          <li key={`${day} ${domain}`} className="flex flex-wrap gap-x-4 border-b border-line py-2">
            <span>{dayText(language, day)}</span>
            <span className="min-w-0 grow break-all font-medium">{domain ?? t("mail.ratesAll")}</span>
            {!sentAt && <span className="text-sm text-quiet">{t("mailRates.notSent")}</span>}
          </li>
        ))}
      </ul>
    </section>
  );
}

const dayText = (language: string, day: string) =>
  new Intl.DateTimeFormat(language, { dateStyle: "medium", timeZone: "UTC" }).format(new Date(day));
