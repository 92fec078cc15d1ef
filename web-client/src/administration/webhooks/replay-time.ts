/** Instants as the value of a field for a date and a time, in the browser's time zone. */

/** Returns the value of a field for an instant, to the minute. */
export function fieldValueOf(date: Date): string {
  const local = new Date(date.getTime() - date.getTimezoneOffset() * 60_000);
  return local.toISOString().slice(0, "2026-01-31T09:15".length);
}

/** Returns the instant of a field's value; null if the field is empty or incomplete. */
export function instantOf(value: string): string | null {
  const date = new Date(value);
  return value === "" || Number.isNaN(date.getTime()) ? null : date.toISOString();
}
