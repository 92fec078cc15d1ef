/** Formats local times. The zone is already applied. */
import type { Language } from "../i18n/words";
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

/** "9 AM". */
export function hourText(language: Language, hour: number): string {
  return formatFor(language, { timeZone: "UTC", hour: "numeric" }).format(Date.UTC(2000, 0, 1, hour));
}

/** "9:30 AM". */
export function localTimeText(language: Language, local: string): string {
  return formatFor(language, { timeZone: "UTC", hour: "numeric", minute: "2-digit" }).format(utcDateOf(local));
}

/** "Monday, November 23", with the year when it is another than `today`'s. */
export function dayText(language: Language, day: string, today: string): string {
  const year = day.slice(0, 4) === today.slice(0, 4) ? undefined : ("numeric" as const);
  const options = { timeZone: "UTC", weekday: "long", month: "long", day: "numeric", year } as const;
  return formatFor(language, options).format(utcDateOf(day));
}

export function monthText(language: Language, day: string): string {
  return formatFor(language, { timeZone: "UTC", month: "long", year: "numeric" }).format(utcDateOf(day));
}

/** "Nov 23 – 29, 2026". */
export function rangeText(language: Language, first: string, last: string): string {
  const options = { timeZone: "UTC", month: "short", day: "numeric", year: "numeric" } as const;
  return formatFor(language, options).formatRange(utcDateOf(first), utcDateOf(last));
}

export function weekdayText(language: Language, day: string, size: "short" | "long"): string {
  return formatFor(language, { timeZone: "UTC", weekday: size }).format(utcDateOf(day));
}

/** An instant in a zone, with the zone's name: "November 23, 2026 at 9:30 AM GMT+9". */
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

/** "9:30 AM" of an instant in a zone. */
export function timeOfDayText(language: Language, zone: string, at: Date): string {
  return localTimeText(language, localOf(zone, at));
}

const HOUR_S = 3_600;
const DAY_S = 24 * HOUR_S;

/** A duration in minutes, hours or days: the largest unit that it fills, rounded. */
export function roundedDuration(seconds: number, t: Translate): string {
  if (seconds >= DAY_S) return t("publishing.days", { count: Math.round(seconds / DAY_S) });
  if (seconds >= HOUR_S) return t("publishing.hours", { count: Math.round(seconds / HOUR_S) });
  return t("publishing.minutes", { count: Math.round(seconds / 60) });
}
