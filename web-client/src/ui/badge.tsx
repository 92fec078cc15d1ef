/** A state as a badge: text and colour. */
import type { ReactNode } from "react";

export type Tone = "good" | "bad" | "wait" | "live" | "quiet";

const TONES: Record<Tone, string> = {
  good: "bg-good-ground text-good",
  bad: "bg-bad-ground text-bad",
  wait: "bg-wait-ground text-wait",
  live: "bg-glow text-accent",
  quiet: "bg-hover text-ink",
};

export function Badge({ tone, children }: { tone: Tone; children: ReactNode }) {
  return (
    <span
      className={`inline-flex shrink-0 items-center gap-1 rounded-full px-2.5 py-0.5 text-xs font-semibold ${TONES[tone]}`}
    >
      {children}
    </span>
  );
}
