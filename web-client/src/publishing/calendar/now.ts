/** The current local time of a zone, to the minute. */
import { useEffect, useState } from "react";
import { localOf } from "../zones";

const UPDATE_INTERVAL_MS = 10_000;

/** Returns the local time, such as "2026-11-23T09:30", and keeps it up to date. */
export function useLocalNow(zone: string): string {
  const localNow = () => localOf(zone, new Date()).slice(0, 16);
  const [now, setNow] = useState(localNow);
  // biome-ignore lint/correctness/useExhaustiveDependencies: the time depends only on the zone.
  useEffect(() => {
    setNow(localNow());
    const timer = setInterval(() => setNow(localNow()), UPDATE_INTERVAL_MS);
    return () => clearInterval(timer);
  }, [zone]);
  return now;
}
