/**
 * Calculates with calendar days such as "2026-11-23", which have no time zone, and lists the days that a view shows.
 */
export type CalendarView = "month" | "week" | "list";

const DAY_MS = 86_400_000;
const LISTED_DAYS = 31;

const utcMidnight = (day: string) => new Date(`${day}T00:00Z`);
const dayOf = (date: Date) => date.toISOString().slice(0, 10);

export function plusDays(day: string, count: number): string {
  return dayOf(new Date(utcMidnight(day).getTime() + count * DAY_MS));
}

/** Returns the same day of another month, or that month's last day if it is shorter. */
export function plusMonths(day: string, count: number): string {
  const first = utcMidnight(`${day.slice(0, 7)}-01`);
  first.setUTCMonth(first.getUTCMonth() + count);
  const last = new Date(Date.UTC(first.getUTCFullYear(), first.getUTCMonth() + 1, 0)).getUTCDate();
  first.setUTCDate(Math.min(last, Number(day.slice(8))));
  return dayOf(first);
}

export function isDay(value: string): boolean {
  const time_ms = Date.parse(`${value}T00:00Z`);
  return /^\d{4}-\d\d-\d\d$/.test(value) && !Number.isNaN(time_ms) && dayOf(new Date(time_ms)) === value;
}

/** Returns the weekday as a number from 0 for Sunday to 6 for Saturday. */
export function weekday(day: string): number {
  return utcMidnight(day).getUTCDay();
}

/**
 * Returns the days of a view. A month has all weeks of the day's month. A week is the day's week. A list has 31 days
 * from the day on.
 */
export function daysOf(view: CalendarView, day: string, firstWeekday: number): string[] {
  if (view === "list") return consecutiveDays(day, LISTED_DAYS);
  const start = view === "week" ? day : `${day.slice(0, 7)}-01`;
  const daysBefore = (weekday(start) - firstWeekday + 7) % 7;
  const first = plusDays(start, -daysBefore);
  if (view === "week") return consecutiveDays(first, 7);
  const daysInView = daysBefore + Number(plusDays(plusMonths(start, 1), -1).slice(8));
  return consecutiveDays(first, Math.ceil(daysInView / 7) * 7);
}

function consecutiveDays(first: string, count: number): string[] {
  return Array.from({ length: count }, (_, index) => plusDays(first, index));
}

/** Returns the day to show after one step back (-1) or forward (1) in a view. */
export function stepView(view: CalendarView, day: string, direction: -1 | 1): string {
  if (view === "month") return plusMonths(day, direction);
  return plusDays(day, direction * (view === "week" ? 7 : LISTED_DAYS));
}

/** Returns the first day of the week in the browser's locale, where 0 is Sunday; Monday if unknown. */
export function firstWeekday(): number {
  const locale = new Intl.Locale(navigator.language) as { getWeekInfo?: () => { firstDay: number } };
  return (locale.getWeekInfo?.().firstDay ?? 1) % 7;
}
