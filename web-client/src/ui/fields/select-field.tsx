/** A labelled field to choose one of several values. */
import type { ReactNode } from "react";
import { LabelledField } from "./labelled-field";

interface Props<Value extends string | number | null> {
  label: string;
  value: Value;
  values: readonly NonNullable<Value>[];
  textOf: (value: NonNullable<Value>) => string;
  /** Text of the choice that means null, such as "All". Without this text, null can't be chosen. */
  emptyText?: string;
  hint?: ReactNode;
  /** Why the value was refused. */
  error?: string | null;
  className?: string;
  onChange: (value: Value) => void;
}

export function SelectField<Value extends string | number | null>(props: Props<Value>) {
  const { label, value, values, textOf, emptyText, hint, error, className = "", onChange } = props;
  return (
    <LabelledField label={label} hint={hint} error={error} className={className}>
      {(fieldProps) => (
        <select
          {...fieldProps}
          className="field"
          value={value ?? ""}
          onChange={(event) => {
            const chosen = values.find((each) => String(each) === event.target.value);
            onChange((chosen ?? null) as Value);
          }}
        >
          {emptyText !== undefined && <option value="">{emptyText}</option>}
          {values.map((each) => (
            <option key={each} value={each}>
              {textOf(each)}
            </option>
          ))}
        </select>
      )}
    </LabelledField>
  );
}
