/** A job's progress as one bar. */
import { useTranslation } from "../ui/preferences";
import type { CallJobProgress } from "./operations";
import { finishedCount, PROGRESS_PARTS } from "./state-styles";

export function CallJobProgressBar({
  progress,
  className = "h-2",
}: {
  progress: CallJobProgress;
  className?: string;
}) {
  const { t } = useTranslation();
  const label = t("callProgress.of", { done: finishedCount(progress), total: progress.total });
  return (
    <div
      role="img"
      aria-label={label}
      className={`flex w-full gap-px overflow-hidden rounded-full bg-line ${className}`}
    >
      {PROGRESS_PARTS.filter(({ part }) => progress[part] > 0).map(({ part, colour }) => (
        <span
          key={part}
          className={`${colour} min-w-1 motion-safe:transition-[flex-grow] motion-safe:duration-500`}
          style={{ flexGrow: progress[part] }}
        />
      ))}
    </div>
  );
}
