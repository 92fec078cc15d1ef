/** The current local time of a zone, to the minute. */
import { useEffect, useState } from "react";
import { localOf } from "./zones";

const LOOK_EVERY_MS = 10_000;

/** "2026-11-23T09:30". */
export function useNow(zone: string): string {
  const read = () => localOf(zone, new Date()).slice(0, 16);
  const [now, setNow] = useState(read);
  // biome-ignore lint/correctness/useExhaustiveDependencies: the time depends only on the zone.
  useEffect(() => {
    setNow(read());
    const timer = setInterval(() => setNow(read()), LOOK_EVERY_MS);
    return () => clearInterval(timer);
  }, [zone]);
  return now;
}
