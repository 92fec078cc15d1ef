/** Local times in IANA zones. A local time is "2026-11-23T09:30", without an offset. */
const MINUTE_MS = 60_000;
const DAY_MS = 24 * 60 * MINUTE_MS;
const cachedFormats = new Map<string, Intl.DateTimeFormat>();

function formatFor(zone: string): Intl.DateTimeFormat {
  const cached = cachedFormats.get(zone);
  if (cached) return cached;
  const twoDigits = "2-digit";
  const created = new Intl.DateTimeFormat("en-US", {
    timeZone: zone,
    hourCycle: "h23",
    year: "numeric",
    month: twoDigits,
    day: twoDigits,
    hour: twoDigits,
    minute: twoDigits,
    second: twoDigits,
  });
  cachedFormats.set(zone, created);
  return created;
}

/** Returns the local time of an instant, to the second. */
export function localOf(zone: string, at: Date): string {
  const parts = Object.fromEntries(
    formatFor(zone)
      .formatToParts(at)
      .map(({ type, value }) => [type, value]),
  );
  return `${parts.year}-${parts.month}-${parts.day}T${parts.hour}:${parts.minute}:${parts.second}`;
}

/** Returns the zone's offset from UTC at an instant, in minutes. */
export function offset_min(zone: string, at: Date): number {
  const wholeSecond_ms = Math.floor(at.getTime() / 1000) * 1000;
  return (Date.parse(`${localOf(zone, at)}Z`) - wholeSecond_ms) / MINUTE_MS;
}

/** Returns the instant of a local time. For a local time that is skipped or occurs twice, returns one of its two instants. */
export function instantOf(zone: string, local: string): Date {
  const utc_ms = Date.parse(`${local}Z`);
  const instants = [-DAY_MS, DAY_MS]
    .map((difference_ms) => offset_min(zone, new Date(utc_ms + difference_ms)))
    .map((offset) => new Date(utc_ms - offset * MINUTE_MS));
  return instants.find((at) => localOf(zone, at).startsWith(local)) ?? (instants[0] as Date);
}

/** Returns a post's local time after a move. A day as slot keeps the time of day, an hour as slot keeps the minutes. */
export function localTimeInSlot(slot: string, local: string): string {
  return slot.length === 10 ? slot + local.slice(10, 16) : slot + local.slice(13, 16);
}

/** Returns all selectable time zones, the browser's own and UTC first. */
export function allZones(): string[] {
  return [...new Set([browserZone(), "UTC", ...Intl.supportedValuesOf("timeZone")])];
}

export function browserZone(): string {
  return Intl.DateTimeFormat().resolvedOptions().timeZone;
}
