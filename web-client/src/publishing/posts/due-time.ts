/** The time at which a post is due: a local time in a zone. */
import { instantOf, localOf } from "../zones";

const HOUR_MS = 3_600_000;

export interface DueTime {
  /** A local time such as "2026-11-23T09:30". Without a date or a time of day, it is not complete. */
  local: string;
  zone: string;
  /** The chosen instant (RFC 3339) of an ambiguous local time; null if none is chosen. */
  reading: string | null;
}

export function dueTimeOf(at: Date, zone: string): DueTime {
  return { local: localOf(zone, at).slice(0, 16), zone, reading: null };
}

/** Returns the first full hour of the zone's clocks at or after a time. The zone may be half an hour off UTC. */
export function nextFullHour(at: Date, zone: string): DueTime {
  const due = dueTimeOf(new Date(at.getTime() + HOUR_MS - 1), zone);
  return { ...due, local: `${due.local.slice(0, 14)}00` };
}

/** Returns the instant. Of an ambiguous local time for which none is chosen, returns one of its two instants. */
export function dueInstantOf({ local, zone, reading }: DueTime): Date {
  return reading ? new Date(reading) : instantOf(zone, local);
}

/** Returns the time as input: the chosen instant, or else the local time, which the server checks. */
export function dueInput({ local, zone, reading }: DueTime) {
  return { ...(reading ? { dueAt: reading } : { dueAtLocal: local }), timeZone: zone };
}

export function isComplete({ local }: DueTime): boolean {
  return /^\d{4}-\d\d-\d\dT\d\d:\d\d$/.test(local);
}

/** Returns whether the server refuses the time: it lies further back than the post may be late. */
export function isTooLate(dueTime: DueTime, maxLatenessS: number, now_ms = Date.now()): boolean {
  return isComplete(dueTime) && lateness_s(dueTime, now_ms) > maxLatenessS;
}

/** Returns by how many seconds the time has passed; zero or less if it has not. */
export function lateness_s(dueTime: DueTime, now_ms = Date.now()): number {
  return (now_ms - dueInstantOf(dueTime).getTime()) / 1_000;
}
