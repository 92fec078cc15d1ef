/** The bounce rates by day of one domain or of all domains, with the recommended maximum. */
import { useEffect, useState } from "react";
import { request, subscribe, useApi } from "../api/api";
import { failureTextKey, rejectionText } from "../api/failure";
import { LabelledField } from "../ui/fields/labelled-field";
import { useTranslation } from "../ui/preferences";
import { EmptyState, LoadingState } from "../ui/states";
import { createValue, useValue } from "../ui/value";
import { BounceRateEvents, BounceRates, type DailyBounceRate } from "./operations";
import { ALARM_RATE, RateChart } from "./rate-chart";
import { RateAlarms, WorstDomainList } from "./rate-lists";

const DAY_MS = 86_400_000;
/** From this rate of complaints on, the sender's reputation suffers. */
const COMPLAINT_ALARM_RATE = 0.001;
const SPANS_DAYS = [14, 30, 90] as const;
const TYPING_DELAY_MS = 400;

/** The selected domain; empty for all domains. */
export const selectedDomain = createValue("");

export function BounceRateReport() {
  const { t, language } = useTranslation();
  const domain = useValue(selectedDomain);
  const [span_days, setSpan_days] = useState<number>(30);
  const { days, rejection } = useRates(domain.trim(), span_days);
  const sent = days?.reduce((sum, day) => sum + day.sent, 0) ?? 0;
  const bounced = days?.reduce((sum, day) => sum + day.bounced, 0) ?? 0;
  // Complaints are not counted for a single domain.
  const complaints = domain.trim() ? null : (days?.reduce((sum, day) => sum + (day.complaints ?? 0), 0) ?? 0);
  const percent = new Intl.NumberFormat(language, { style: "percent", maximumFractionDigits: 2 });
  return (
    <>
      <div className="flex flex-wrap items-end gap-3">
        <LabelledField label={t("mail.ratesOf")} className="grow basis-60">
          {(props) => (
            <input
              {...props}
              type="search"
              className="field"
              autoCapitalize="off"
              spellCheck={false}
              placeholder={t("mail.ratesAll")}
              value={domain}
              onChange={(event) => selectedDomain.set(event.target.value)}
            />
          )}
        </LabelledField>
        <fieldset className="flex gap-1" aria-label={t("mail.span")}>
          {SPANS_DAYS.map((days) => (
            <button
              key={days}
              type="button"
              aria-pressed={span_days === days}
              onClick={() => setSpan_days(days)}
              className="min-h-9 rounded-full border border-line px-3 text-sm hover:bg-hover aria-pressed:border-accent aria-pressed:bg-glow"
            >
              {t("mail.days", { count: days })}
            </button>
          ))}
        </fieldset>
      </div>
      {rejection && (
        <p role="alert" className="mt-4 text-bad">
          {rejection}
        </p>
      )}
      {!days && !rejection && <LoadingState rows={4} />}
      {days && sent === 0 && (
        <EmptyState icon="mail" title={t("mail.ratesNone")} hint={t("mail.ratesNoneHint")} />
      )}
      {days && sent > 0 && (
        <section className="mt-6" aria-label={t("mail.rates")}>
          <p className="mb-4 flex flex-wrap items-baseline gap-x-3">
            <span
              data-testid="bounce-rate"
              className={`text-2xl font-semibold tabular-nums ${bounced / sent >= ALARM_RATE ? "text-bad" : ""}`}
            >
              {percent.format(bounced / sent)}
            </span>
            <span className="text-quiet">{t("mail.ratesSum", { bounced, sent })}</span>
            {complaints !== null && (
              <span className={complaints / sent >= COMPLAINT_ALARM_RATE ? "text-bad" : "text-quiet"}>
                {t("mailRates.complaints", { count: complaints, rate: percent.format(complaints / sent) })}
              </span>
            )}
          </p>
          <RateChart days={days} />
          <BounceRateTable days={days.filter((day) => day.sent > 0)} percent={percent} />
          {!domain.trim() && <WorstDomainList day={days.findLast((day) => day.sent > 0)?.day ?? null} />}
          <RateAlarms />
        </section>
      )}
    </>
  );
}

function useRates(
  domain: string,
  span_days: number,
): { days: readonly DailyBounceRate[] | null; rejection: string | null } {
  const { t } = useTranslation();
  const { direct } = useApi();
  const [days, setDays] = useState<readonly DailyBounceRate[] | null>(null);
  const [rejection, setRejection] = useState<string | null>(null);
  const changes = useRateChanges();
  // biome-ignore lint/correctness/useExhaustiveDependencies: the rates are read again after each change.
  useEffect(() => {
    let isCurrent = true;
    const timer = setTimeout(
      () => {
        const to = new Date();
        const from = new Date(to.getTime() - (span_days - 1) * DAY_MS);
        const variables = { domain: domain || null, from: from.toISOString(), to: to.toISOString() };
        request(direct, BounceRates, variables).then(
          ({ bounceRates }) => {
            if (!isCurrent) return;
            setDays(bounceRates);
            setRejection(null);
          },
          (error) => isCurrent && setRejection(rejectionText(error) ?? t(failureTextKey(error))),
        );
      },
      domain ? TYPING_DELAY_MS : 0,
    );
    return () => {
      isCurrent = false;
      clearTimeout(timer);
    };
  }, [direct, domain, span_days, t, changes]);
  return { days, rejection };
}

/** Returns a number that grows whenever mail was counted, or may have been counted unnoticed. */
function useRateChanges(): number {
  const { direct } = useApi();
  const [changes, setChanges] = useState(0);
  useEffect(
    () =>
      subscribe(direct, BounceRateEvents, {}, ({ bounceRateEvents: event }) => {
        if (event.__typename !== "StreamReady" || !event.resumed) setChanges((count) => count + 1);
      }),
    [direct],
  );
  return changes;
}

function BounceRateTable({
  days,
  percent,
}: {
  days: readonly DailyBounceRate[];
  percent: Intl.NumberFormat;
}) {
  const { t, language } = useTranslation();
  const cell = "px-3 py-1.5 text-right tabular-nums";
  const date = new Intl.DateTimeFormat(language, { dateStyle: "medium", timeZone: "UTC" });
  return (
    <details className="mt-4">
      <summary className="text-sm text-quiet">{t("mail.table")}</summary>
      <table className="mt-2 w-full max-w-xl text-sm">
        <thead className="text-quiet">
          <tr>
            <th className="px-3 py-1.5 text-left font-medium">{t("mail.day")}</th>
            <th className={`${cell} font-medium`}>{t("mail.sent")}</th>
            <th className={`${cell} font-medium`}>{t("mail.bounced")}</th>
            <th className={`${cell} font-medium`}>{t("mail.rate")}</th>
          </tr>
        </thead>
        <tbody>
          {days.toReversed().map(({ day, sent, bounced, rate }) => (
            <tr key={day} className="border-t border-line">
              <td className="px-3 py-1.5">{date.format(new Date(day))}</td>
              <td className={cell}>{sent.toLocaleString(language)}</td>
              <td className={cell}>{bounced.toLocaleString(language)}</td>
              <td className={`${cell} ${rate >= ALARM_RATE ? "font-semibold text-bad" : ""}`}>
                {percent.format(rate)}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </details>
  );
}
