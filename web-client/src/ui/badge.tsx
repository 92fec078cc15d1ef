/** A badge: a short text on a coloured background, such as the state of a call job or a verdict about an address. */
import type { ReactNode } from "react";

/** The meaning of a badge's colour. "live" is in progress, "wait" is paused or uncertain, "quiet" is neutral. */
export type BadgeTone = "good" | "bad" | "wait" | "live" | "quiet";

const CLASSES_BY_TONE: Record<BadgeTone, string> = {
  good: "bg-good-ground text-good",
  bad: "bg-bad-ground text-bad",
  wait: "bg-wait-ground text-wait",
  live: "bg-glow text-accent",
  quiet: "bg-hover text-ink",
};

export function Badge({ tone, children }: { tone: BadgeTone; children: ReactNode }) {
  return (
    <span
      className={`inline-flex shrink-0 items-center gap-1 rounded-full px-2.5 py-0.5 text-xs font-semibold ${CLASSES_BY_TONE[tone]}`}
    >
      {children}
    </span>
  );
}
