/** Helpers of the charts: an element's width, and the ticks of value axes and time axes. */
import { type RefObject, useEffect, useState } from "react";

const INITIAL_WIDTH_PX = 640;

/** Returns the width of an element in pixels, but at least 240, and updates it on every change. */
export function useWidth(element: RefObject<HTMLElement | null>): number {
  const [width_px, setWidth] = useState(INITIAL_WIDTH_PX);
  useEffect(() => {
    if (!element.current) return;
    const observer = new ResizeObserver(
      ([entry]) => entry && setWidth(Math.max(240, entry.contentRect.width)),
    );
    observer.observe(element.current);
    return () => observer.disconnect();
  }, [element]);
  return width_px;
}

/** Returns round values from 0 to at least `maximum`, in about `count` steps. */
export function valueTicks(maximum: number, count = 4): number[] {
  const exactStep = Math.max(maximum, Number.EPSILON) / count;
  const magnitude = 10 ** Math.floor(Math.log10(exactStep));
  const step = ([1, 2, 2.5, 5, 10].find((each) => each * magnitude >= exactStep * 0.999) ?? 10) * magnitude;
  const stepCount = Math.max(1, Math.ceil(maximum / step - 1e-9));
  return Array.from({ length: stepCount + 1 }, (_, n) => Number((n * step).toPrecision(6)));
}

const SECOND_MS = 1000;
const ROUND_STEPS_S = [
  1, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400,
];

/** Returns the round times within an interval, at most `count` + 1 of them, in milliseconds. */
export function timeTicks(from_ms: number, to_ms: number, count: number): number[] {
  const minStep_s = (to_ms - from_ms) / SECOND_MS / count;
  const step_ms =
    (ROUND_STEPS_S.find((step) => step >= minStep_s) ?? Math.ceil(minStep_s / 86400) * 86400) * SECOND_MS;
  const first_ms = Math.ceil(from_ms / step_ms) * step_ms;
  const last_ms = Math.floor(to_ms / step_ms) * step_ms;
  return Array.from(
    { length: Math.max(0, (last_ms - first_ms) / step_ms + 1) },
    (_, n) => first_ms + n * step_ms,
  );
}
