/** Formats local times and instants for the viewer. A local time needs no conversion to a zone. */
import type { Language } from "../i18n/texts";
import type { Translate } from "../ui/preferences";
import { localOf } from "./zones";

const cachedFormats = new Map<string, Intl.DateTimeFormat>();

function formatFor(language: Language, options: Intl.DateTimeFormatOptions): Intl.DateTimeFormat {
  const key = language + JSON.stringify(options);
  const cached = cachedFormats.get(key) ?? new Intl.DateTimeFormat(language, options);
  cachedFormats.set(key, cached);
  return cached;
}

const utcDateOf = (local: string) => new Date(`${local.length === 10 ? `${local}T00:00` : local}Z`);

/** Returns a text such as "9 AM". */
export function hourText(language: Language, hour: number): string {
  return formatFor(language, { timeZone: "UTC", hour: "numeric" }).format(Date.UTC(2000, 0, 1, hour));
}

/** Returns the time of day of a local time, such as "9:30 AM". */
export function localTimeText(language: Language, local: string): string {
  return formatFor(language, { timeZone: "UTC", hour: "numeric", minute: "2-digit" }).format(
    utcDateOf(local),
  );
}

/** Returns a text such as "Monday, November 23", with the year if it differs from the year of `today`. */
export function dayText(language: Language, day: string, today: string): string {
  const year = day.slice(0, 4) === today.slice(0, 4) ? undefined : ("numeric" as const);
  const options = { timeZone: "UTC", weekday: "long", month: "long", day: "numeric", year } as const;
  return formatFor(language, options).format(utcDateOf(day));
}

export function monthText(language: Language, day: string): string {
  return formatFor(language, { timeZone: "UTC", month: "long", year: "numeric" }).format(utcDateOf(day));
}

/** Returns a text such as "Nov 23 – 29, 2026". */
export function rangeText(language: Language, first: string, last: string): string {
  const options = { timeZone: "UTC", month: "short", day: "numeric", year: "numeric" } as const;
  return formatFor(language, options).formatRange(utcDateOf(first), utcDateOf(last));
}

export function weekdayText(language: Language, day: string, size: "short" | "long"): string {
  return formatFor(language, { timeZone: "UTC", weekday: size }).format(utcDateOf(day));
}

/** Returns an instant as a text in a zone, with the zone's name: "Mon, November 23, 2026 at 9:30 AM GMT+9". */
export function instantText(language: Language, zone: string, at: Date): string {
  const options = {
    timeZone: zone,
    year: "numeric",
    month: "long",
    day: "numeric",
    weekday: "short",
    hour: "numeric",
    minute: "2-digit",
    timeZoneName: "short",
  } as const;
  return formatFor(language, options).format(at);
}

/** Returns the time of day of an instant in a zone, such as "9:30 AM". */
export function timeOfDayText(language: Language, zone: string, at: Date): string {
  return localTimeText(language, localOf(zone, at));
}

const HOUR_S = 3_600;
const DAY_S = 24 * HOUR_S;

/** Returns a duration rounded to minutes, hours or days: the largest unit of which it is at least one. */
export function roundedDuration(seconds: number, t: Translate): string {
  if (seconds >= DAY_S) return t("publishing.days", { count: Math.round(seconds / DAY_S) });
  if (seconds >= HOUR_S) return t("publishing.hours", { count: Math.round(seconds / HOUR_S) });
  return t("publishing.minutes", { count: Math.round(seconds / 60) });
}
