/** A form field with its label, its hint and the check of its length. */
import { type ReactNode, useId } from "react";
import type { LengthCheck } from "./length";

interface FieldProps {
  id: string;
  "aria-invalid"?: true;
  "aria-describedby": string | undefined;
}

interface Props {
  label: string;
  hint?: ReactNode;
  /** The check of the text's length, from `useLength`. */
  length?: LengthCheck;
  /** Why the text was refused. */
  error?: string | null;
  className?: string;
  /** Renders the field with these attributes. */
  children: (props: FieldProps) => ReactNode;
}

export function LabelledField({ label, hint, length, error, className = "", children }: Props) {
  const id = useId();
  const hintId = hint ? `${id}-hint` : undefined;
  const errorId = error ? `${id}-error` : undefined;
  const descriptionIds = [length?.fieldProps["aria-describedby"], errorId, hintId].filter(Boolean).join(" ");
  return (
    <div className={`flex min-w-0 flex-col gap-1 ${className}`}>
      <label htmlFor={id} className="text-sm font-medium">
        {label}
      </label>
      {children({
        id,
        ...length?.fieldProps,
        ...(error && { "aria-invalid": true }),
        "aria-describedby": descriptionIds || undefined,
      })}
      {length?.note}
      {error && (
        <p id={errorId} role="alert" className="text-sm text-bad">
          {error}
        </p>
      )}
      {hint && (
        <p id={hintId} className="text-sm text-quiet">
          {hint}
        </p>
      )}
    </div>
  );
}
