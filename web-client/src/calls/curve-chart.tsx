/** A step chart of the calls in progress, with a line at the limit. It advances while calls are in progress. */
import { useEffect, useRef, useState } from "react";
import { axisTime } from "../i18n/times";
import { timeTicks, useWidth, valueTicks } from "../ui/chart";
import { useTranslation } from "../ui/preferences";
import { type CurvePoint, peakOf } from "./call-curve";
import { useCallStore } from "./call-store";

const HEIGHT_PX = 190;
const LEFT_PX = 34;
const BOTTOM_PX = 22;
const TOP_PX = 10;
const LINE_PX = 14;
const SPAN_MIN_MS = { live: 20_000, ended: 2_000 };
const TICK_MS = 1_000;
const TIME_LABEL_WIDTH_PX = 90;

interface Props {
  points: readonly CurvePoint[];
  /** The maximum number of concurrent calls; null until it is loaded. */
  limit: number | null;
  /** Whether the chart advances with the clock. */
  isLive: boolean;
}

export function CurveChart({ points, limit, isLive }: Props) {
  const { t, language } = useTranslation();
  const box = useRef<HTMLDivElement>(null);
  const width_px = useWidth(box);
  const now_ms = useServerTime(isLive, useCallStore().now_ms);
  const first_ms = points[0]?.at_ms ?? now_ms;
  const last_ms = points.at(-1)?.at_ms ?? now_ms;
  const until_ms = Math.max(
    isLive ? Math.max(now_ms, last_ms) : last_ms,
    first_ms + SPAN_MIN_MS[isLive ? "live" : "ended"],
  );
  const peak = peakOf(points);
  const valueLabels = valueTicks(Math.max(peak, limit ?? 0, 1)).filter(Number.isInteger);
  const axisMax = valueLabels.at(-1) ?? 1;
  const x = (at_ms: number) =>
    LEFT_PX + ((at_ms - first_ms) / (until_ms - first_ms)) * (width_px - LEFT_PX - 8);
  const y = (active: number) => TOP_PX + (1 - active / axisMax) * (HEIGHT_PX - TOP_PX - BOTTOM_PX);
  const path = stepPath(points, isLive ? until_ms : last_ms, x, y);
  const label = t("callJob.curveIs", { now: points.at(-1)?.active ?? 0, peak, limit: limit ?? "?" });
  return (
    <div ref={box} className="min-w-0">
      <svg role="img" aria-label={label} width="100%" height={HEIGHT_PX} className="block text-xs">
        {valueLabels.map((step) => (
          <g key={step}>
            <line x1={LEFT_PX} x2={width_px - 8} y1={y(step)} y2={y(step)} className="stroke-line" />
            <text x={LEFT_PX - 8} y={y(step) + 4} textAnchor="end" className="fill-quiet tabular-nums">
              {step.toLocaleString(language)}
            </text>
          </g>
        ))}
        {timeTicks(first_ms, until_ms, Math.max(2, Math.floor(width_px / TIME_LABEL_WIDTH_PX))).map(
          (at_ms) => (
            <text
              key={at_ms}
              x={x(at_ms)}
              y={HEIGHT_PX - 4}
              textAnchor="middle"
              className="fill-quiet tabular-nums"
            >
              {axisTime(language, new Date(at_ms), until_ms - first_ms)}
            </text>
          ),
        )}
        {path && (
          <>
            <path d={`${path} V${y(0)} H${x(first_ms)} Z`} className="fill-glow" />
            <path d={path} fill="none" strokeWidth={2} strokeLinejoin="round" className="stroke-accent" />
          </>
        )}
        {limit !== null && (
          <>
            <line
              x1={LEFT_PX}
              x2={width_px - 8}
              y1={y(limit)}
              y2={y(limit)}
              strokeWidth={1.5}
              strokeDasharray="5 4"
              className="stroke-bad"
            />
            <text
              x={width_px - 10}
              y={y(limit) < LINE_PX * 2 ? y(limit) + LINE_PX : y(limit) - 5}
              textAnchor="end"
              className="fill-bad font-semibold"
            >
              {t("callJob.limit", { count: limit })}
            </text>
          </>
        )}
      </svg>
    </div>
  );
}

type PixelScale = (value: number) => number;

/** Returns an SVG path with horizontal steps; empty without points. */
function stepPath(points: readonly CurvePoint[], until_ms: number, x: PixelScale, y: PixelScale): string {
  const [first] = points;
  if (!first) return "";
  const steps = points.map(({ at_ms, active }) => `H${x(at_ms).toFixed(1)} V${y(active).toFixed(1)}`);
  return `M${x(first.at_ms).toFixed(1)} ${y(0).toFixed(1)} ${steps.join(" ")} H${x(until_ms).toFixed(1)}`;
}

function useServerTime(live: boolean, clock_ms: () => number): number {
  const [now_ms, setNow_ms] = useState(clock_ms);
  useEffect(() => {
    if (!live) return;
    const timer = setInterval(() => setNow_ms(clock_ms()), TICK_MS);
    return () => clearInterval(timer);
  }, [live, clock_ms]);
  return now_ms;
}
