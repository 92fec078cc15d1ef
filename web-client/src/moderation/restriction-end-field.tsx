/** The field for the end of a mute or a ban. */
import { LabelledField } from "../ui/fields/labelled-field";
import { useTranslation } from "../ui/preferences";
import type { RestrictionEndChoice, RestrictionEndName } from "./ends";

interface Props {
  label: string;
  names: readonly RestrictionEndName[];
  value: RestrictionEndChoice;
  onChange: (value: RestrictionEndChoice) => void;
}

export function RestrictionEndField({ label, names, value, onChange }: Props) {
  const { t } = useTranslation();
  return (
    <>
      <LabelledField label={label}>
        {(props) => (
          <select
            {...props}
            className="field"
            value={value.name}
            onChange={(event) => onChange({ ...value, name: event.target.value as RestrictionEndName })}
          >
            {names.map((name) => (
              <option key={name} value={name}>
                {t(`end.${name}`)}
              </option>
            ))}
          </select>
        )}
      </LabelledField>
      {value.name === "custom" && (
        <LabelledField label={t("end.at")}>
          {(props) => (
            <input
              {...props}
              type="datetime-local"
              className="field"
              required
              value={value.local}
              onChange={(event) => onChange({ ...value, local: event.target.value })}
            />
          )}
        </LabelledField>
      )}
    </>
  );
}
