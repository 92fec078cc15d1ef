/** Formats dates and times for the viewer. */
import type { Language } from "./texts";

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;
const cachedFormats = new Map<string, Intl.DateTimeFormat>();

function formatFor(language: Language, options: Intl.DateTimeFormatOptions): Intl.DateTimeFormat {
  const key = language + JSON.stringify(options);
  const cached = cachedFormats.get(key) ?? new Intl.DateTimeFormat(language, options);
  cachedFormats.set(key, cached);
  return cached;
}

/**
 * Converts a timeline's timestamp ("seconds.micros"). Precise to the millisecond: for display, never for comparison.
 */
export function dateOf(timestamp: string): Date {
  return new Date(Number(timestamp) * 1000);
}

export function timeOfDay(language: Language, date: Date): string {
  return formatFor(language, { hour: "numeric", minute: "2-digit" }).format(date);
}

export function dateAndTime(language: Language, date: Date): string {
  return formatFor(language, { dateStyle: "long", timeStyle: "short" }).format(date);
}

export function dayLabel(language: Language, date: Date, now: Date): string {
  const year = date.getFullYear() === now.getFullYear() ? undefined : "numeric";
  return formatFor(language, { year, weekday: "short", month: "long", day: "numeric" }).format(date);
}

export function isSameDay(a: Date, b: Date): boolean {
  return a.toDateString() === b.toDateString();
}

/** Returns a label for a time axis: to the second below 5 minutes of axis length, with the day above 24 hours. */
export function axisTime(language: Language, date: Date, span_ms: number): string {
  if (span_ms > DAY_MS)
    return formatFor(language, { month: "short", day: "numeric", hour: "numeric" }).format(date);
  const second = span_ms < 5 * MINUTE_MS ? ("2-digit" as const) : undefined;
  return formatFor(language, { hour: "2-digit", minute: "2-digit", second, hourCycle: "h23" }).format(date);
}

/** Returns the time of day if the date is today; otherwise date and time. */
export function timeOrDate(language: Language, date: Date, now: Date): string {
  if (isSameDay(date, now)) return timeOfDay(language, date);
  return formatFor(language, { dateStyle: "medium", timeStyle: "short" }).format(date);
}

/** Returns an age such as "5 min. ago" if it is less than a day; otherwise the date. */
export function relativeTime(language: Language, date: Date, now: Date): string {
  const age_ms = now.getTime() - date.getTime();
  const relative = new Intl.RelativeTimeFormat(language, { numeric: "auto", style: "short" });
  if (age_ms < MINUTE_MS) return relative.format(0, "minute");
  if (age_ms < HOUR_MS) return relative.format(-Math.floor(age_ms / MINUTE_MS), "minute");
  if (age_ms < DAY_MS) return relative.format(-Math.floor(age_ms / HOUR_MS), "hour");
  const year = date.getFullYear() === now.getFullYear() ? undefined : "numeric";
  return formatFor(language, { year, month: "short", day: "numeric" }).format(date);
}
