/** The fields for the start time, the calling hours and the retries of a list. */
import { LabelledField } from "../../ui/fields/labelled-field";
import { useTranslation } from "../../ui/preferences";
import { type CallListDraft, WEEK } from "./draft";

const ZONES = Intl.supportedValuesOf("timeZone");

interface Props {
  draft: CallListDraft;
  change: (part: Partial<CallListDraft>) => void;
}

export function CallListOptions({ draft, change }: Props) {
  const { t } = useTranslation();
  return (
    <details className="rounded-card border border-line bg-raised px-4 py-3 open:pb-4">
      <summary className="font-medium">{t("callList.more")}</summary>
      <div className="mt-4 grid gap-4 sm:grid-cols-2">
        <LabelledField label={t("callList.startAt")}>
          {(props) => (
            <input
              {...props}
              type="datetime-local"
              className="field"
              value={draft.startAt}
              onChange={(event) => change({ startAt: event.target.value })}
            />
          )}
        </LabelledField>
        <NumberField
          label={t("callList.expectedSeconds")}
          min={1}
          value={draft.expectedCallS}
          onChange={(expectedCallS) => change({ expectedCallS })}
        />
        <NumberField
          label={t("callList.attempts")}
          min={1}
          value={draft.maxAttempts}
          onChange={(maxAttempts) => change({ maxAttempts })}
        />
        <NumberField
          label={t("callList.retryMinutes")}
          min={0}
          value={draft.retryMinutes}
          onChange={(retryMinutes) => change({ retryMinutes })}
        />
      </div>
      <label className="mt-4 flex min-h-9 items-center gap-2 font-medium">
        <input
          type="checkbox"
          className="size-4 accent-accent"
          checked={draft.hasWindow}
          onChange={(event) => change({ hasWindow: event.target.checked })}
        />
        {t("callList.window")}
      </label>
      {draft.hasWindow && <CallWindowFields draft={draft} change={change} />}
    </details>
  );
}

interface NumberFieldProps {
  label: string;
  min: number;
  value: string;
  onChange: (value: string) => void;
}

function NumberField({ label, min, value, onChange }: NumberFieldProps) {
  return (
    <LabelledField label={label}>
      {(props) => (
        <input
          {...props}
          type="number"
          inputMode="numeric"
          min={min}
          className="field tabular-nums"
          value={value}
          onChange={(event) => onChange(event.target.value)}
        />
      )}
    </LabelledField>
  );
}

function CallWindowFields({ draft, change }: Props) {
  const { t } = useTranslation();
  const { weekdays } = draft;
  return (
    <div className="mt-2 grid gap-4 sm:grid-cols-2">
      <div className="grid grid-cols-2 gap-3">
        {(["start", "end"] as const).map((name) => (
          <LabelledField key={name} label={t(name === "start" ? "callList.from" : "callList.to")}>
            {(props) => (
              <input
                {...props}
                type="time"
                className="field tabular-nums"
                value={draft[name]}
                onChange={(event) => change({ [name]: event.target.value })}
              />
            )}
          </LabelledField>
        ))}
      </div>
      <LabelledField label={t("callList.zone")}>
        {(props) => (
          <select
            {...props}
            className="field"
            value={draft.timeZone}
            onChange={(event) => change({ timeZone: event.target.value })}
          >
            {(ZONES.includes(draft.timeZone) ? ZONES : [draft.timeZone, ...ZONES]).map((zone) => (
              <option key={zone}>{zone}</option>
            ))}
          </select>
        )}
      </LabelledField>
      <fieldset className="sm:col-span-2">
        <legend className="mb-1 text-sm font-medium">{t("callList.days")}</legend>
        <div className="flex flex-wrap gap-1">
          {WEEK.map((day) => (
            <button
              key={day}
              type="button"
              aria-pressed={weekdays.includes(day)}
              onClick={() =>
                change({
                  weekdays: WEEK.filter((each) => weekdays.includes(each) !== (each === day)),
                })
              }
              className="min-h-9 min-w-11 rounded-full border border-line px-2 text-sm aria-pressed:border-accent aria-pressed:bg-glow aria-pressed:text-accent"
            >
              {t(`callDay.${day}`)}
            </button>
          ))}
        </div>
      </fieldset>
    </div>
  );
}
