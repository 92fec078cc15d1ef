/** Results of finished calls, the most frequent first. */
import { useTranslation } from "../ui/preferences";
import type { CallJobProgress, CallOutcome } from "./operations";

const REACHED: readonly CallOutcome[] = ["ANSWERED", "VOICEMAIL"];
const NOT_CALLED: readonly CallOutcome[] = ["DO_NOT_CALL", "EXPIRED"];

function colourOf(outcome: CallOutcome): string {
  if (REACHED.includes(outcome)) return "bg-good";
  return NOT_CALLED.includes(outcome) ? "bg-quiet" : "bg-bad";
}

export function CallOutcomes({ progress }: { progress: CallJobProgress }) {
  const { t, language } = useTranslation();
  const outcomes = [...progress.outcomes].sort((a, b) => b.count - a.count);
  const maxCount = outcomes[0]?.count ?? 0;
  const total = outcomes.reduce((sum, { count }) => sum + count, 0);
  if (total === 0) return <p className="text-quiet">{t("callJob.outcomesNone")}</p>;
  const percent = new Intl.NumberFormat(language, { style: "percent", maximumFractionDigits: 0 });
  return (
    <ul className="flex flex-col gap-2">
      {outcomes.map(({ outcome, count }) => (
        <li
          key={outcome}
          data-outcome={outcome}
          className="grid grid-cols-[8rem_1fr_5rem] items-center gap-3 text-sm"
        >
          <span className="truncate">{t(`callOutcome.${outcome}`)}</span>
          <span className="h-2.5 overflow-hidden rounded-full bg-hover" aria-hidden="true">
            <span
              className={`block h-full rounded-full motion-safe:transition-[width] motion-safe:duration-500 ${colourOf(outcome)}`}
              style={{ width: `${(count / maxCount) * 100}%` }}
            />
          </span>
          <span className="text-right tabular-nums">
            {count.toLocaleString(language)}
            <span className="ml-2 inline-block w-9 text-quiet">{percent.format(count / total)}</span>
          </span>
        </li>
      ))}
    </ul>
  );
}
