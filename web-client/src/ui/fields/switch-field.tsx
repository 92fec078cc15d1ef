/** A switch that stores its change at once. It keeps the keyboard's focus while the change is stored. */
import { useId, useState } from "react";
import { notifyFailure } from "../toasts";

interface Props {
  label: string;
  hint?: string;
  isOn: boolean;
  /** Stores the change. A failure is shown, and the switch stays as it was. */
  change: (isOn: boolean) => Promise<void>;
}

export function SwitchField({ label, hint, isOn, change }: Props) {
  const id = useId();
  const [isSaving, setIsSaving] = useState(false);
  async function save(next: boolean) {
    setIsSaving(true);
    await change(next).catch(notifyFailure);
    setIsSaving(false);
  }
  return (
    <label className="flex cursor-pointer items-start gap-3 py-3">
      <input
        type="checkbox"
        className="mt-1 size-4 shrink-0 accent-accent"
        checked={isOn}
        aria-disabled={isSaving}
        aria-describedby={hint && id}
        onChange={(event) => !isSaving && save(event.target.checked)}
      />
      <span>
        <span className="block font-medium">{label}</span>
        {hint && (
          <span id={id} className="block text-sm text-quiet">
            {hint}
          </span>
        )}
      </span>
    </label>
  );
}
