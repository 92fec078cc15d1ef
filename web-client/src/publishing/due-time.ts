/** The time at which a post is due: a local time in a zone. */
import { localOf, withOffset } from "./zones";

export interface DueTime {
  /** "2026-11-23T09:30". */
  local: string;
  zone: string;
  /** The chosen instant (RFC 3339) of an ambiguous local time; null if none is chosen. */
  reading: string | null;
}

export function dueTimeOf(at: Date, zone: string): DueTime {
  return { local: localOf(zone, at).slice(0, 16), zone, reading: null };
}

export function dueAtOf({ local, zone, reading }: DueTime): string {
  return reading ?? withOffset(zone, local);
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
  return (now_ms - new Date(dueAtOf(dueTime)).getTime()) / 1_000;
}
