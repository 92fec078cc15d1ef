/** Repeats a function while a component is shown. */
import { useEffect } from "react";

/** Calls a function at intervals while the page is visible. */
export function useRepeatedly(run: () => Promise<void> | void, interval_ms: number): void {
  useEffect(() => {
    const timer = setInterval(() => document.visibilityState === "visible" && void run(), interval_ms);
    return () => clearInterval(timer);
  }, [run, interval_ms]);
}
