/** A checkbox of a list of choices. */
import type { ReactNode } from "react";

interface Props {
  isChecked: boolean;
  isDisabled?: boolean;
  onChange: (isChecked: boolean) => void;
  children: ReactNode;
}

export function CheckBox({ isChecked, isDisabled = false, onChange, children }: Props) {
  return (
    <label
      className={`flex min-h-8 min-w-0 items-start gap-2 py-1 ${isDisabled ? "text-quiet" : "cursor-pointer"}`}
    >
      <input
        type="checkbox"
        className="mt-1 size-4 shrink-0 accent-accent"
        checked={isChecked}
        disabled={isDisabled}
        onChange={(event) => onChange(event.target.checked)}
      />
      <span className="min-w-0">{children}</span>
    </label>
  );
}

/** Returns the items with one added at the end, or removed. */
export function withItem(items: readonly string[], item: string, isIncluded: boolean): string[] {
  const others = items.filter((each) => each !== item);
  return isIncluded ? [...others, item] : others;
}
