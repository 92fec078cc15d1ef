/** The field for the reason of an action. Others read the reason later. */
import { LIMITS } from "../../api/limits";
import { useTranslation } from "../preferences";
import { LabelledField } from "./labelled-field";
import { useLength } from "./length";
import { excessOf, lengthOf } from "./text-length";

interface Props {
  hint: string;
  value: string;
  onChange: (reason: string) => void;
}

export function ReasonField({ hint, value, onChange }: Props) {
  const { t } = useTranslation();
  const length = useLength(value, LIMITS.reason);
  return (
    <LabelledField label={t("reason")} hint={hint} length={length}>
      {(props) => (
        <input
          {...props}
          className="field"
          value={value}
          onChange={(event) => onChange(event.target.value)}
        />
      )}
    </LabelledField>
  );
}

/** Returns whether the server takes the text as a reason: it is neither empty nor too long. */
export const isReason = (text: string): boolean => lengthOf(text) > 0 && excessOf(text, LIMITS.reason) <= 0;
