/** A table of row errors: line, column, value and reason. */
import { useTranslation } from "../../ui/preferences";
import type { RowError } from "../operations";

interface Props {
  errors: readonly RowError[];
  /** The invalid values by line of the uploaded call list. Omitted if only the errors are available, not the list. */
  values?: ReadonlyMap<number, string>;
}

export function RowErrors({ errors, values }: Props) {
  const { t, language } = useTranslation();
  const cell = "px-3 py-1.5 align-baseline [overflow-wrap:normal]";
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a scrollable area must be reachable by keyboard.
    <div className="thin-scroll max-h-96 overflow-auto rounded-xl border border-line" tabIndex={0}>
      <table className="w-full text-left text-sm" data-testid="row-errors">
        <thead className="sticky top-0 bg-well text-quiet max-sm:sr-only">
          <tr>
            <th className={`${cell} text-right font-medium`}>{t("callList.line")}</th>
            <th className={`${cell} font-medium`}>{t("callList.column")}</th>
            {values && <th className={`${cell} font-medium`}>{t("callList.value")}</th>}
            <th className={`${cell} font-medium`}>{t("callList.error")}</th>
          </tr>
        </thead>
        <tbody>
          {errors.map(({ row, column, message }) => (
            <tr
              key={row}
              data-row={row}
              className="border-t border-line max-sm:grid max-sm:grid-cols-[3rem_1fr_auto] max-sm:py-1"
            >
              <td className={`${cell} text-right tabular-nums`}>{row.toLocaleString(language)}</td>
              <td className={`${cell} whitespace-nowrap`}>{column ?? t("callList.wholeRow")}</td>
              {values && (
                <td className={`${cell} max-w-48 truncate`} title={values.get(row)}>
                  <code className="rounded bg-bad-ground px-1.5 py-0.5 text-bad">
                    {values.get(row) || "—"}
                  </code>
                </td>
              )}
              <td className={`${cell} min-w-36 max-sm:col-span-2 max-sm:col-start-2`} lang="en">
                {message}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
