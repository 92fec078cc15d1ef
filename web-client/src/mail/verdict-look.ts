/** How the badge of a verdict looks. */
import type { BadgeTone } from "../ui/badge";
import type { VerdictRule } from "./operations";

export interface JudgedStanding {
  blocked: boolean;
  verdict: { rule: VerdictRule };
  success: number;
  softBounce: number;
  hardBounce: number;
}

interface VerdictLook {
  tone: BadgeTone;
  icon: "close" | "check";
  textKey: `verdict.${VerdictRule}`;
}

/** Returns the look. Without any delivery, bounces are no sign that mail arrives, even if no rule blocks it. */
export function verdictLook({
  blocked,
  verdict: { rule },
  success,
  softBounce,
  hardBounce,
}: JudgedStanding): VerdictLook {
  const textKey = `verdict.${rule}` as const;
  if (blocked) return { tone: "bad", icon: "close", textKey };
  if (success === 0 && softBounce + hardBounce > 0) return { tone: "wait", icon: "close", textKey };
  return { tone: rule === "UNKNOWN_ADDRESS" ? "quiet" : "good", icon: "check", textKey };
}
