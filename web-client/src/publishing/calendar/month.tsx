/** A month as whole weeks. Each cell shows as many posts as fit, and links to its day's list. */
import { useEffect, useRef, useState } from "react";
import { Icon } from "../../ui/icons";
import { useTranslation } from "../../ui/preferences";
import { dayText, monthText, weekdayText } from "../local-times";
import type { ScheduledPost } from "../operations";
import { stateStyle, URGENCY } from "../posts/state-badge";
import { PostChip, type PostChipContext } from "./chip";

const WEEKDAY_ROW_PX = 30;
const CELL_HEADER_PX = 36;
const CHIP_PX = 28;
const CHIPS_MIN = 2;

export interface CalendarGridProps {
  days: readonly string[];
  /** The day whose month or week is shown. */
  day: string;
  today: string;
  postsBySlot: ReadonlyMap<string, readonly ScheduledPost[]>;
  chipContext: PostChipContext;
  /** Opens the list of a day. */
  openDay: (day: string) => void;
  /** Opens the form for a new post at a slot. */
  createPost: (slot: string) => void;
}

export function MonthGrid({
  days,
  day,
  today,
  postsBySlot,
  chipContext,
  openDay,
  createPost,
}: CalendarGridProps) {
  const { t, language } = useTranslation();
  const body = useRef<HTMLTableSectionElement>(null);
  const capacity = useChipCapacity(body, days.length / 7);
  const weeks = Array.from({ length: days.length / 7 }, (_, week) => days.slice(week * 7, week * 7 + 7));
  return (
    <table className="h-full w-full table-fixed border-collapse" aria-label={monthText(language, day)}>
      <thead>
        <tr>
          {days.slice(0, 7).map((name) => (
            <th
              key={name}
              scope="col"
              className="border-b border-line py-1.5 text-center text-xs font-medium text-quiet"
            >
              <span aria-hidden="true">{weekdayText(language, name, "short")}</span>
              <span className="sr-only">{weekdayText(language, name, "long")}</span>
            </th>
          ))}
        </tr>
      </thead>
      <tbody ref={body}>
        {weeks.map((week) => (
          <tr key={week[0]} style={{ height: `${700 / days.length}%` }}>
            {week.map((each) => {
              const posts = postsBySlot.get(each) ?? [];
              const isDropTarget = chipContext.drag.dragged?.slot === each;
              const isOtherMonth = each.slice(0, 7) !== day.slice(0, 7);
              return (
                // biome-ignore lint/a11y/useKeyWithClickEvents: keyboard users create posts from the day's list or the header.
                <td
                  key={each}
                  data-slot={each >= today ? each : undefined}
                  onClick={(event) =>
                    event.target === event.currentTarget && each >= today && createPost(each)
                  }
                  className={`border border-line p-0.5 align-top sm:p-1 ${isOtherMonth ? "bg-well" : ""} ${isDropTarget ? "bg-glow outline-2 -outline-offset-2 outline-accent" : ""}`}
                >
                  <button
                    type="button"
                    data-day={each}
                    aria-label={`${dayText(language, each, today)}, ${t("publishing.count", { count: posts.length })}`}
                    aria-current={each === today ? "date" : undefined}
                    onClick={() => openDay(each)}
                    className={`inline-flex size-6.5 items-center justify-center rounded-full text-sm tabular-nums hover:bg-hover aria-[current]:bg-accent aria-[current]:font-semibold aria-[current]:text-on-accent ${isOtherMonth ? "text-quiet" : ""}`}
                  >
                    {Number(each.slice(8))}
                  </button>
                  {posts.length > 0 && <PostChipSummary posts={posts} onClick={() => openDay(each)} />}
                  <PostChips
                    posts={posts}
                    capacity={capacity}
                    chipContext={chipContext}
                    onMore={() => openDay(each)}
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

/** Returns how many chips fit into a cell, and follows the window's size. */
function useChipCapacity(body: { current: HTMLElement | null }, weeks: number): number {
  const [capacity, setCapacity] = useState(CHIPS_MIN);
  useEffect(() => {
    const box = body.current?.closest("[data-scroller]");
    if (!box) return;
    const watcher = new ResizeObserver(() =>
      setCapacity(
        Math.max(
          CHIPS_MIN,
          Math.floor(((box.clientHeight - WEEKDAY_ROW_PX) / weeks - CELL_HEADER_PX) / CHIP_PX),
        ),
      ),
    );
    watcher.observe(box);
    return () => watcher.disconnect();
  }, [body, weeks]);
  return capacity;
}

interface PostChipsProps {
  posts: readonly ScheduledPost[];
  capacity: number;
  chipContext: PostChipContext;
  onMore: () => void;
}

/** Shows as many chips as fit. If there are more posts, the last line opens the day's list. */
export function PostChips({ posts, capacity, chipContext, onMore }: PostChipsProps) {
  const { t } = useTranslation();
  const visiblePosts = posts.length > capacity ? posts.slice(0, capacity - 1) : posts;
  if (posts.length === 0) return null;
  return (
    <ul className="mt-0.5 hidden flex-col gap-0.5 sm:flex">
      {visiblePosts.map((post) => (
        <li key={post.id}>
          <PostChip post={post} chipContext={chipContext} />
        </li>
      ))}
      {posts.length > visiblePosts.length && (
        <li>
          <button
            type="button"
            onClick={onMore}
            className="h-6.5 w-full rounded-md px-1 text-left text-xs font-medium text-quiet hover:bg-hover"
          >
            {t("publishing.more", { count: posts.length - visiblePosts.length })}
          </button>
        </li>
      )}
    </ul>
  );
}

/** A summary for cells that are too narrow for chips: the number of posts, and the most urgent state. */
function PostChipSummary({ posts, onClick }: { posts: readonly ScheduledPost[]; onClick: () => void }) {
  const state = URGENCY.find((each) => posts.some((post) => post.state === each)) ?? "SCHEDULED";
  const { icon, className } = stateStyle(state);
  return (
    <button
      type="button"
      tabIndex={-1}
      aria-hidden="true"
      onClick={onClick}
      className={`flex w-full items-center justify-center gap-0.5 rounded-md border-b-2 py-0.5 text-xs tabular-nums sm:hidden ${className}`}
    >
      <Icon name={icon} className="size-3.5" />
      {posts.length}
    </button>
  );
}
