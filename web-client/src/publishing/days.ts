/** Days as "2026-11-23", and which of them a view shows. They have no time zone: a day is a cell of the calendar. */
export type View = "month" | "week" | "list";

const DAY_MS = 86_400_000;
const LISTED_DAYS = 31;

const utc = (day: string) => new Date(`${day}T00:00Z`);
const text = (date: Date) => date.toISOString().slice(0, 10);

export function plusDays(day: string, count: number): string {
  return text(new Date(utc(day).getTime() + count * DAY_MS));
}

/** The same day of another month, or that month's last day. */
export function plusMonths(day: string, count: number): string {
  const first = utc(`${day.slice(0, 7)}-01`);
  first.setUTCMonth(first.getUTCMonth() + count);
  const last = new Date(Date.UTC(first.getUTCFullYear(), first.getUTCMonth() + 1, 0)).getUTCDate();
  first.setUTCDate(Math.min(last, Number(day.slice(8))));
  return text(first);
}

export function isDay(given: string): boolean {
  const time_ms = Date.parse(`${given}T00:00Z`);
  return /^\d{4}-\d\d-\d\d$/.test(given) && !Number.isNaN(time_ms) && text(new Date(time_ms)) === given;
}

/** 0 for a Sunday. */
export function weekday(day: string): number {
  return utc(day).getUTCDay();
}

/** The days of a view around a day: the month's weeks, the day's week, or the days from it on. */
export function daysOf(view: View, day: string, firstWeekday: number): string[] {
  if (view === "list") return row(day, LISTED_DAYS);
  const start = view === "week" ? day : `${day.slice(0, 7)}-01`;
  const back = (weekday(start) - firstWeekday + 7) % 7;
  const first = plusDays(start, -back);
  if (view === "week") return row(first, 7);
  const shown = back + Number(plusDays(plusMonths(start, 1), -1).slice(8));
  return row(first, Math.ceil(shown / 7) * 7);
}

function row(first: string, count: number): string[] {
  return Array.from({ length: count }, (_, place) => plusDays(first, place));
}

/** One step of a view, back (-1) or forward (1). */
export function stepView(view: View, day: string, by: -1 | 1): string {
  if (view === "month") return plusMonths(day, by);
  return plusDays(day, by * (view === "week" ? 7 : LISTED_DAYS));
}

/** The first day of the week in the browser's locale; Monday if unknown. */
export function firstWeekday(): number {
  const locale = new Intl.Locale(navigator.language) as { getWeekInfo?: () => { firstDay: number } };
  return (locale.getWeekInfo?.().firstDay ?? 1) % 7;
}
