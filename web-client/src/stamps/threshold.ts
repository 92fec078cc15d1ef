/** Thresholds of rules by which people earn packs, as the server accepts them. */
import type { StampRuleKind } from "./operations";

export function maxThreshold(kind: StampRuleKind): number {
  return kind === "MEMBER_DAYS" ? 3_650 : 1_000;
}

export function isThreshold(kind: StampRuleKind, text: string): boolean {
  return /^[1-9]\d*$/.test(text.trim()) && Number(text) <= maxThreshold(kind);
}
