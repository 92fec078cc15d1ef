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
  className?: string;
  /** Renders the field with these attributes. */
  children: (props: FieldProps) => ReactNode;
}

export function LabelledField({ label, hint, length, className = "", children }: Props) {
  const id = useId();
  const hintId = hint ? `${id}-hint` : undefined;
  const descriptionIds = [length?.fieldProps["aria-describedby"], hintId].filter(Boolean).join(" ");
  return (
    <div className={`flex min-w-0 flex-col gap-1 ${className}`}>
      <label htmlFor={id} className="text-sm font-medium">
        {label}
      </label>
      {children({ id, ...length?.fieldProps, "aria-describedby": descriptionIds || undefined })}
      {length?.note}
      {hint && (
        <p id={hintId} className="text-sm text-quiet">
          {hint}
        </p>
      )}
    </div>
  );
}
