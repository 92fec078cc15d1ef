/** Shows the server's validation of a draft while the user edits it. The server stores nothing. */
import { useEffect, useMemo, useState } from "react";
import { request, useApi } from "../../api/api";
import { failureTextKey, rejectionText } from "../../api/failure";
import { timeOrDate } from "../../i18n/times";
import { Icon } from "../../ui/icons";
import { useTranslation } from "../../ui/preferences";
import { CheckCallList, type ListCheck } from "../operations";
import { firstRows, valuesByLine } from "./csv";
import { type CallListDraft, checkInput } from "./draft";
import { RowErrors } from "./row-errors";

const CHECK_DELAY_MS = 300;
const PREVIEW_ROWS = 5;

export interface ListCheckState {
  isChecking: boolean;
  result: ListCheck | null;
  error: unknown;
}

const NOT_CHECKED: ListCheckState = { isChecking: false, result: null, error: null };

/** Has the server validate the draft 300 ms after its last change. Answers about earlier versions are ignored. */
export function useListCheck(draft: CallListDraft): ListCheckState {
  const { direct } = useApi();
  const [check, setCheck] = useState(NOT_CHECKED);
  // A list may be large, so it is sent again only when a field changes that affects validation.
  const {
    csv,
    defaultRegion,
    startAt,
    hasWindow,
    start,
    end,
    timeZone,
    weekdays,
    expectedCallS,
    maxAttempts,
    retryMinutes,
  } = draft;
  // biome-ignore lint/correctness/useExhaustiveDependencies: all fields of the draft except its name and scenario.
  useEffect(() => {
    if (csv.trim() === "") return setCheck(NOT_CHECKED);
    let isCurrent = true;
    setCheck((current) => ({ ...current, isChecking: true }));
    const timer = setTimeout(() => {
      request(direct, CheckCallList, { input: checkInput(draft) }).then(
        ({ checkCallList: result }) => isCurrent && setCheck({ isChecking: false, result, error: null }),
        (error) => isCurrent && setCheck({ isChecking: false, result: null, error }),
      );
    }, CHECK_DELAY_MS);
    return () => {
      isCurrent = false;
      clearTimeout(timer);
    };
  }, [
    direct,
    csv,
    defaultRegion,
    startAt,
    hasWindow,
    start,
    end,
    timeZone,
    weekdays,
    expectedCallS,
    maxAttempts,
    retryMinutes,
  ]);
  return check;
}

export function ListCheckResult({ csv, check }: { csv: string; check: ListCheckState }) {
  const { t } = useTranslation();
  const { result, error, isChecking } = check;
  return (
    <div aria-live="polite" className="flex flex-col gap-4 xl:sticky xl:top-6" data-checking={isChecking}>
      {!result && !error && (
        <p className="rounded-card bg-well px-4 py-6 text-center text-quiet">
          {t(isChecking ? "callList.checking" : "callList.empty")}
        </p>
      )}
      {error !== null && (
        <p className="rounded-card bg-bad-ground px-4 py-3 text-bad">
          {rejectionText(error) ?? t(failureTextKey(error))}
        </p>
      )}
      {result && <CheckedCallList csv={csv} result={result} />}
    </div>
  );
}

function CheckedCallList({ csv, result }: { csv: string; result: ListCheck }) {
  const { t } = useTranslation();
  const values = useMemo(() => valuesByLine(csv, result.rowErrors), [csv, result]);
  if (result.rowErrorCount === 0) return <ValidCallList csv={csv} result={result} />;
  return (
    <>
      <p className="rounded-card bg-bad-ground px-4 py-3 text-bad">
        <span className="font-semibold">{t("callList.bad", { count: result.rowErrorCount })}.</span>{" "}
        {t("callList.badHint")}
      </p>
      <RowErrors errors={result.rowErrors} values={values} />
      {result.rowErrors.length < result.rowErrorCount && (
        <p className="text-sm text-quiet">{t("callList.firstErrors", { count: result.rowErrors.length })}</p>
      )}
    </>
  );
}

function ValidCallList({ csv, result }: { csv: string; result: ListCheck }) {
  const { t, language } = useTranslation();
  const { estimatedEndAt: end } = result;
  const { columns, rows } = firstRows(csv, PREVIEW_ROWS);
  const cell = "max-w-48 truncate px-3 py-1.5";
  return (
    <>
      <div className="flex items-start gap-3 rounded-card bg-good-ground px-4 py-3 text-good">
        <Icon name="check" className="mt-0.5 size-5" />
        <div>
          <p className="font-semibold">{t("callList.good", { count: result.rows })}</p>
          {end && <p>{t("callList.ends", { time: timeOrDate(language, new Date(end), new Date()) })}</p>}
        </div>
      </div>
      {!end && <p className="rounded-card bg-wait-ground px-4 py-3 text-wait">{t("callList.endsNever")}</p>}
      <section aria-label={t("callList.preview")}>
        <h2 className="mb-2 text-sm font-semibold text-quiet">{t("callList.preview")}</h2>
        {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a scrollable area must be reachable by keyboard. */}
        <div className="thin-scroll overflow-x-auto rounded-xl border border-line" tabIndex={0}>
          <table className="w-full text-left text-sm">
            <thead className="bg-well text-quiet">
              <tr>
                {columns.map((name) => (
                  <th key={name} className={`${cell} font-medium`}>
                    {name}
                  </th>
                ))}
              </tr>
            </thead>
            <tbody>
              {rows.map(({ line, cells }) => (
                <tr key={line} className="border-t border-line">
                  {columns.map((name, index) => (
                    <td key={name} className={cell}>
                      {cells[index]}
                    </td>
                  ))}
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      </section>
    </>
  );
}
