/** A bar chart of the bounce rate by day, with a line at the rate above which a sender's reputation suffers. */
import { useRef } from "react";
import { useWidth, valueTicks } from "../ui/chart";
import { useTranslation } from "../ui/preferences";
import type { DailyBounceRate } from "./operations";

export const ALARM_RATE = 0.02;

const HEIGHT_PX = 240;
const LEFT_PX = 44;
const BOTTOM_PX = 24;
const TOP_PX = 14;
const DAY_LABEL_WIDTH_PX = 64;

export function RateChart({ days }: { days: readonly DailyBounceRate[] }) {
  const { t, language } = useTranslation();
  const box = useRef<HTMLDivElement>(null);
  const width_px = useWidth(box);
  const percent = new Intl.NumberFormat(language, { style: "percent", maximumFractionDigits: 1 });
  const date = new Intl.DateTimeFormat(language, { month: "short", day: "numeric", timeZone: "UTC" });
  const peak = Math.max(...days.map(({ rate }) => rate));
  const ticks = valueTicks(Math.max(peak, ALARM_RATE * 1.5));
  const axisMax = ticks.at(-1) ?? 1;
  const slot_px = (width_px - LEFT_PX) / days.length;
  const bar_px = Math.max(2, Math.min(28, slot_px * 0.7));
  const y = (rate: number) => TOP_PX + (1 - rate / axisMax) * (HEIGHT_PX - TOP_PX - BOTTOM_PX);
  const daysPerLabel = Math.max(1, Math.ceil(DAY_LABEL_WIDTH_PX / slot_px));
  const daysAboveAlarm = days.filter(({ rate, sent }) => sent > 0 && rate >= ALARM_RATE).length;
  return (
    <div ref={box} className="min-w-0">
      <svg
        role="img"
        aria-label={t("mail.chart", { most: percent.format(peak), count: daysAboveAlarm })}
        width="100%"
        height={HEIGHT_PX}
        className="block text-xs"
      >
        {ticks.map((tick) => (
          <g key={tick}>
            <line x1={LEFT_PX} x2={width_px} y1={y(tick)} y2={y(tick)} className="stroke-line" />
            <text x={LEFT_PX - 8} y={y(tick) + 4} textAnchor="end" className="fill-quiet tabular-nums">
              {percent.format(tick)}
            </text>
          </g>
        ))}
        {days.map(({ day, rate, sent, bounced }, index) => {
          const middle = LEFT_PX + slot_px * (index + 0.5);
          const name = date.format(new Date(day));
          return (
            <g key={day}>
              <title>{t("mail.chartDay", { day: name, rate: percent.format(rate), bounced, sent })}</title>
              {/* This transparent area makes the tooltip appear over the whole slot, even above a low bar. */}
              <rect
                x={middle - slot_px / 2}
                y={TOP_PX}
                width={slot_px}
                height={HEIGHT_PX - TOP_PX - BOTTOM_PX}
                fill="transparent"
              />
              {sent > 0 && (
                <rect
                  x={middle - bar_px / 2}
                  y={Math.min(y(rate), y(0) - 2)}
                  width={bar_px}
                  height={Math.max(2, y(0) - y(rate))}
                  rx={2}
                  className={rate >= ALARM_RATE ? "fill-bad" : "fill-good"}
                />
              )}
              {(days.length - 1 - index) % daysPerLabel === 0 && (
                <text
                  x={Math.min(middle, width_px - 20)}
                  y={HEIGHT_PX - 6}
                  textAnchor="middle"
                  className="fill-quiet"
                >
                  {name}
                </text>
              )}
            </g>
          );
        })}
        <line
          x1={LEFT_PX}
          x2={width_px}
          y1={y(ALARM_RATE)}
          y2={y(ALARM_RATE)}
          strokeWidth={1.5}
          strokeDasharray="5 4"
          className="stroke-accent"
        />
        <text x={LEFT_PX + 6} y={y(ALARM_RATE) - 5} className="fill-accent font-semibold">
          {t("mail.alarm", { rate: percent.format(ALARM_RATE) })}
        </text>
      </svg>
    </div>
  );
}
