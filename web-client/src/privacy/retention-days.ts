/** Reads the number of days that an administrator types for a retention rule. */
import type { RetentionRule } from "./retention-operations";

type Bounds = Pick<RetentionRule, "minDays" | "maxDays">;

/** Returns the typed number of days; null for an empty text, which means the default; undefined if it is not valid. */
export function daysOf(text: string, { minDays, maxDays }: Bounds): number | null | undefined {
  const digits = text.trim();
  if (digits === "") return null;
  const days = Number(digits);
  return Number.isInteger(days) && days >= minDays && days <= maxDays ? days : undefined;
}

/** Returns whether data go earlier than now. Null means that data are kept for good. */
export function isShorter(days: number | null, present: number | null): boolean {
  return (days ?? Number.POSITIVE_INFINITY) < (present ?? Number.POSITIVE_INFINITY);
}
