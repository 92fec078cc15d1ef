/** When a person may send the next message to a topic with slow mode. */
import { useEffect, useState } from "react";
import { dateOf } from "../../i18n/times";
import type { Message } from "../operations";

export const SLOW_MODES_S = [0, 10, 30, 60, 300, 900, 3_600, 21_600] as const;

const SECOND_MS = 1_000;

/** Returns the instant in milliseconds at which the person may write again; 0 if at once. */
export function nextMessageAt(messages: readonly Message[], userId: string, slowModeSeconds: number): number {
  const last = messages.findLast(({ author }) => author.id === userId);
  return last && slowModeSeconds > 0 ? dateOf(last.timestamp).getTime() + slowModeSeconds * SECOND_MS : 0;
}

/** Returns the whole seconds until an instant, and renders the component again every second until then. */
export function useSecondsUntil(instant_ms: number): number {
  const [now, setNow] = useState(Date.now);
  const isFuture = instant_ms > now;
  useEffect(() => {
    setNow(Date.now());
    if (!isFuture) return;
    const timer = setInterval(() => setNow(Date.now()), SECOND_MS);
    return () => clearInterval(timer);
  }, [isFuture]);
  return Math.max(0, Math.ceil((instant_ms - now) / SECOND_MS));
}

/** Returns a duration as a text such as "30 sec" or "5 min". Parts of a unit are rounded up. */
export function durationText(language: string, seconds: number): string {
  const [unit, value] =
    seconds < 60
      ? ["second", seconds]
      : seconds < 3_600
        ? ["minute", Math.ceil(seconds / 60)]
        : ["hour", Math.ceil(seconds / 3_600)];
  return new Intl.NumberFormat(language, { style: "unit", unit: String(unit), unitDisplay: "short" }).format(
    Number(value),
  );
}
