/** When a mute or a ban ends: after a duration, at a time that the person chooses, or never. */

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;

const DURATIONS_MS = {
  tenMinutes: 10 * MINUTE_MS,
  hour: HOUR_MS,
  eightHours: 8 * HOUR_MS,
  day: DAY_MS,
  week: 7 * DAY_MS,
  month: 30 * DAY_MS,
} as const;

export type RestrictionEndName = keyof typeof DURATIONS_MS | "never" | "custom";

export const ENDS_OF_MUTES: readonly RestrictionEndName[] = ["tenMinutes", "hour", "day", "week", "custom"];
/** The ends of a person's own mutes, which the person may end at any time. */
export const ENDS_OF_OWN_MUTES: readonly RestrictionEndName[] = [
  "hour",
  "eightHours",
  "day",
  "week",
  "never",
];
export const ENDS_OF_BANS: readonly RestrictionEndName[] = ["never", "day", "week", "month", "custom"];

export interface RestrictionEndChoice {
  name: RestrictionEndName;
  /** A local time of the browser such as 2030-01-01T12:00, for a custom end. */
  local: string;
}

/** Returns the instant of the end, "never", or null if the choice is incomplete or not in the future. */
export function endOf({ name, local }: RestrictionEndChoice, now: Date): Date | "never" | null {
  if (name === "never") return "never";
  if (name !== "custom") return new Date(now.getTime() + DURATIONS_MS[name]);
  const end = new Date(local);
  return end.getTime() > now.getTime() ? end : null;
}

/** Returns the end of a mute as the API takes it: an instant, or null for a mute that does not end. */
export function untilOf(name: RestrictionEndName, now: Date): string | null {
  const end = endOf({ name, local: "" }, now);
  return end instanceof Date ? end.toISOString() : null;
}
