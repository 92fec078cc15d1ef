/** One of several choices, with what it does. The choices of a group have the same `group`, and stand in a fieldset. */

interface Props {
  group: string;
  title: string;
  hint?: string;
  isChosen: boolean;
  onChoose: () => void;
}

export function RadioChoice({ group, title, hint, isChosen, onChoose }: Props) {
  return (
    <label className="flex cursor-pointer items-start gap-3 rounded-xl px-2 py-1.5 hover:bg-hover">
      <input
        type="radio"
        name={group}
        className="mt-1 size-4 shrink-0 accent-accent"
        checked={isChosen}
        onChange={onChoose}
      />
      <span className="min-w-0">
        <span className="block font-medium">{title}</span>
        {hint && <span className="block text-sm text-quiet">{hint}</span>}
      </span>
    </label>
  );
}
