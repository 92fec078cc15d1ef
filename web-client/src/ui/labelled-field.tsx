/** A form field with its label and hint. */
import { type ReactNode, useId } from "react";

interface Props {
  label: string;
  hint?: ReactNode;
  /** Shown below the field, such as the length of its text. */
  note?: ReactNode;
  className?: string;
  children: (props: { id: string; "aria-describedby": string | undefined }) => ReactNode;
}

export function LabelledField({ label, hint, note, className = "", children }: Props) {
  const id = useId();
  return (
    <div className={`flex min-w-0 flex-col gap-1 ${className}`}>
      <label htmlFor={id} className="text-sm font-medium">
        {label}
      </label>
      {children({ id, "aria-describedby": hint ? `${id}-hint` : undefined })}
      {note}
      {hint && (
        <p id={`${id}-hint`} className="text-sm text-quiet">
          {hint}
        </p>
      )}
    </div>
  );
}
