/**
 * The fields for the time at which a post is due: a local time in a zone. A local time that clocks skip or repeat is
 * ambiguous: it has two readings, and the user chooses one of these instants.
 */
import { useTranslation } from "../../ui/preferences";
import { instantText, roundedDuration } from "../local-times";
import { ZoneSelect } from "../zone";
import { type DueTime, isComplete, isTooLate, lateness_s } from "./due-time";
import type { TimeReadings } from "./rejections";

interface Props {
  value: DueTime;
  onChange: (dueTime: DueTime) => void;
  /** Both readings, after the server has rejected the local time as ambiguous; null otherwise. */
  readings: TimeReadings | null;
}

export function DueTimeFields({ value, onChange, readings, maxLatenessS }: Props & { maxLatenessS: number }) {
  const { t } = useTranslation();
  const [day = "", time = ""] = value.local.split("T");
  const change = (part: Partial<DueTime>) => onChange({ ...value, reading: null, ...part });
  return (
    <fieldset className="flex flex-col gap-2">
      <legend className="mb-1 text-sm font-medium">{t("publishing.when")}</legend>
      <div className="flex flex-wrap gap-2">
        <input
          type="date"
          required
          aria-label={t("publishing.date")}
          className="field min-w-0 flex-1 basis-32"
          value={day}
          onChange={(event) => change({ local: `${event.target.value}T${time}` })}
        />
        <input
          type="time"
          required
          aria-label={t("publishing.time")}
          className="field min-w-0 flex-1 basis-32"
          value={time}
          onChange={(event) => change({ local: `${day}T${event.target.value}` })}
        />
        <ZoneSelect value={value.zone} onChange={(zone) => change({ zone })} className="flex-1 basis-44" />
      </div>
      <PastTimeNote dueTime={value} maxLatenessS={maxLatenessS} />
      {readings && <ReadingChoice value={value} onChange={onChange} readings={readings} />}
    </fieldset>
  );
}

/** Says what happens to a post whose time has passed. */
function PastTimeNote({ dueTime, maxLatenessS }: { dueTime: DueTime; maxLatenessS: number }) {
  const { t } = useTranslation();
  if (!isComplete(dueTime) || lateness_s(dueTime) <= 0) return null;
  if (!isTooLate(dueTime, maxLatenessS)) return <p className="text-sm text-wait">{t("publishing.past")}</p>;
  const duration = roundedDuration(maxLatenessS, t);
  return (
    <p role="alert" className="text-sm text-bad">
      {t("publishing.tooLate", { duration })}
    </p>
  );
}

function ReadingChoice({ value, onChange, readings }: Props & { readings: TimeReadings }) {
  const { t, language } = useTranslation();
  const time = value.local.slice(11);
  return (
    <div role="alert" className="rounded-card border border-wait bg-wait-ground p-3">
      <p className="mb-2 text-wait">
        {t(readings.kind === "twice" ? "publishing.thereTwice" : "publishing.notThere", {
          time,
          zone: value.zone,
        })}
      </p>
      {readings.instants.map((instant) => (
        <label
          key={instant}
          className="flex min-h-9 cursor-pointer items-center gap-3 rounded-lg px-2 hover:bg-hover"
        >
          <input
            type="radio"
            name="reading"
            className="size-4 accent-accent"
            checked={value.reading === instant}
            onChange={() => onChange({ ...value, reading: instant })}
          />
          {instantText(language, value.zone, new Date(instant))}
        </label>
      ))}
    </div>
  );
}
