/** A week with a row for each hour. A row grows with its posts, so that posts never overlap. */
import { useEffect, useRef } from "react";
import { useTranslation } from "../../ui/preferences";
import { dayText, hourText, rangeText, weekdayText } from "../local-times";
import { type CalendarGridProps, PostChips } from "./month";

const HOURS = Array.from({ length: 24 }, (_, hour) => String(hour).padStart(2, "0"));
const FIRST_VISIBLE_HOUR = "08";
const CHIPS_PER_CELL = 4;
const HEADER_PX = 56;

interface Props extends CalendarGridProps {
  /** The current local time in the calendar's zone, such as "2026-11-23T14:05". */
  now: string;
}

export function WeekGrid({ days, today, now, postsBySlot, chipContext, openDay, createPost }: Props) {
  const { t, language } = useTranslation();
  const firstVisibleRow = useRef<HTMLTableRowElement>(null);
  const todayColumn = useRef<HTMLTableCellElement>(null);
  useEffect(() => {
    const scroller = firstVisibleRow.current?.closest("[data-scroller]");
    if (!scroller || !firstVisibleRow.current) return;
    scroller.scrollTop = firstVisibleRow.current.offsetTop - HEADER_PX;
    scroller.scrollLeft = (todayColumn.current?.offsetLeft ?? 0) - HEADER_PX;
  }, []);
  const first = days[0] as string;
  const last = days.at(-1) as string;
  return (
    <table
      className="w-full min-w-160 table-fixed border-collapse"
      aria-label={rangeText(language, first, last)}
    >
      <thead className="sticky top-0 z-10 bg-paper shadow-[0_1px_0_var(--color-line)]">
        <tr>
          <th scope="col" className="sticky left-0 w-14 bg-paper sm:w-18">
            <span className="sr-only">{t("publishing.hour")}</span>
          </th>
          {days.map((day) => (
            <th
              key={day}
              ref={day === today ? todayColumn : undefined}
              scope="col"
              className="py-1 font-medium"
            >
              <button
                type="button"
                data-day={day}
                aria-current={day === today ? "date" : undefined}
                onClick={() => openDay(day)}
                className="rounded-full px-3 py-1 text-sm hover:bg-hover aria-[current]:bg-accent aria-[current]:text-on-accent"
              >
                <span aria-hidden="true">
                  {weekdayText(language, day, "short")} {Number(day.slice(8))}
                </span>
                <span className="sr-only">{dayText(language, day, today)}</span>
              </button>
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {HOURS.map((hour) => (
          <tr key={hour} ref={hour === FIRST_VISIBLE_HOUR ? firstVisibleRow : undefined}>
            <th
              scope="row"
              className="sticky left-0 whitespace-nowrap border-r border-line bg-paper px-1.5 pt-0.5 text-right align-top text-xs font-normal text-quiet tabular-nums"
            >
              {hourText(language, Number(hour))}
            </th>
            {days.map((day) => {
              const slot = `${day}T${hour}`;
              const isPast = slot < now.slice(0, 13);
              const isDropTarget = chipContext.drag.dragged?.slot === slot;
              const isCurrentHour = slot === now.slice(0, 13);
              return (
                // biome-ignore lint/a11y/useKeyWithClickEvents: keyboard users create posts from the day's list or the header.
                <td
                  key={day}
                  data-slot={isPast ? undefined : slot}
                  onClick={(event) => event.target === event.currentTarget && !isPast && createPost(slot)}
                  className={`h-11 border border-line p-0.5 align-top ${isPast ? "bg-well" : ""} ${isCurrentHour ? "border-t-2 border-t-accent" : ""} ${isDropTarget ? "bg-glow outline-2 -outline-offset-2 outline-accent" : ""}`}
                >
                  <PostChips
                    posts={postsBySlot.get(slot) ?? []}
                    capacity={CHIPS_PER_CELL}
                    chipContext={chipContext}
                    onMore={() => openDay(day)}
                  />
                </td>
              );
            })}
          </tr>
        ))}
      </tbody>
    </table>
  );
}
