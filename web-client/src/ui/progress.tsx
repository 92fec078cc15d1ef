/** A bar that shows how much of a task is done. */
export function LabelledProgress({ label, done, total }: { label: string; done: number; total: number }) {
  return (
    <div className="flex items-center gap-3 text-sm text-quiet">
      <progress
        className="progress h-2 w-40 max-w-full grow sm:grow-0"
        aria-label={label}
        value={done}
        max={total}
      />
      <span className="shrink-0 tabular-nums">{label}</span>
    </div>
  );
}
