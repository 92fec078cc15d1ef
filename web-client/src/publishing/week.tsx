/** A week by the hour. A row grows with its posts, so nothing overlaps. */
import { useEffect, useRef } from "react";
import { useTranslation } from "../ui/preferences";
import { dayText, hourText, rangeText, weekdayText } from "./local-times";
import { Chips, type GridProps } from "./month";

const HOURS = Array.from({ length: 24 }, (_, hour) => String(hour).padStart(2, "0"));
const FIRST_SHOWN = "08";
const ROOM = 4;
const HEAD_PX = 56;

interface Props extends GridProps {
  /** "2026-11-23T14:05", in the calendar's zone. */
  now: string;
}

export function Week({ days, today, now, slots, actions, openDay, createPost }: Props) {
  const { t, language } = useTranslation();
  const morning = useRef<HTMLTableRowElement>(null);
  const column = useRef<HTMLTableCellElement>(null);
  useEffect(() => {
    const scroller = morning.current?.closest("[data-scroller]");
    if (!scroller || !morning.current) return;
    scroller.scrollTop = morning.current.offsetTop - HEAD_PX;
    scroller.scrollLeft = (column.current?.offsetLeft ?? 0) - HEAD_PX;
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
            <th key={day} ref={day === today ? column : undefined} scope="col" className="py-1 font-medium">
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
          <tr key={hour} ref={hour === FIRST_SHOWN ? morning : undefined}>
            <th
              scope="row"
              className="sticky left-0 whitespace-nowrap border-r border-line bg-paper px-1.5 pt-0.5 text-right align-top text-xs font-normal text-quiet tabular-nums"
            >
              {hourText(language, Number(hour))}
            </th>
            {days.map((day) => {
              const slot = `${day}T${hour}`;
              const past = slot < now.slice(0, 13);
              const over = actions.drag.dragged?.slot === slot;
              const current = slot === now.slice(0, 13);
              return (
                // biome-ignore lint/a11y/useKeyWithClickEvents: keyboard users create posts from the day's list or the header.
                <td
                  key={day}
                  data-slot={past ? undefined : slot}
                  onClick={(event) => event.target === event.currentTarget && !past && createPost(slot)}
                  className={`h-11 border border-line p-0.5 align-top ${past ? "bg-well" : ""} ${current ? "border-t-2 border-t-accent" : ""} ${over ? "bg-glow outline-2 -outline-offset-2 outline-accent" : ""}`}
                >
                  <Chips
                    posts={slots.get(slot) ?? []}
                    capacity={ROOM}
                    actions={actions}
                    more={() => openDay(day)}
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
