/** A chip: a post on the calendar with its state, its time and the beginning of its text. */
import type { KeyboardEvent } from "react";
import { Icon } from "../../ui/icons";
import { useTranslation } from "../../ui/preferences";
import { timeOfDayText } from "../local-times";
import type { ScheduledPost } from "../operations";
import { stateStyle } from "../posts/state-badge";
import type { PostDrag } from "./drag";

/** Shared by all chips of the calendar: the zone of their times, the drag in progress, and the actions on posts. */
export interface PostChipContext {
  zone: string;
  drag: PostDrag;
  openPost: (post: ScheduledPost) => void;
  openMoveDialog: (post: ScheduledPost) => void;
  mayMove: (post: ScheduledPost) => boolean;
}

export function PostChip({ post, chipContext }: { post: ScheduledPost; chipContext: PostChipContext }) {
  const { t, language } = useTranslation();
  const { icon, className } = stateStyle(post.state);
  const time = timeOfDayText(language, chipContext.zone, new Date(post.dueAt));
  const text = post.text || t("publishing.onlyMedia");
  const isMovable = chipContext.mayMove(post);
  const isDragged = chipContext.drag.dragged?.post.id === post.id;
  const label = `${time} ${text}, ${t(`publishing.state.${post.state}`)}`;

  function handleKey(event: KeyboardEvent) {
    if (event.key.toLowerCase() !== "m" || event.ctrlKey || event.metaKey || !isMovable) return;
    event.preventDefault();
    chipContext.openMoveDialog(post);
  }

  return (
    <button
      type="button"
      data-scheduled={post.id}
      data-state={post.state}
      aria-keyshortcuts={isMovable ? "m" : undefined}
      title={label}
      onClick={(event) => {
        event.stopPropagation();
        chipContext.openPost(post);
      }}
      onKeyDown={handleKey}
      {...(isMovable ? chipContext.drag.handleProps(post) : {})}
      className={`flex h-6.5 w-full select-none items-center gap-1 rounded-md border-l-3 px-1 text-left text-xs ${className} ${isMovable ? "cursor-grab" : ""} ${isDragged ? "opacity-40" : ""} hover:brightness-95 dark:hover:brightness-125`}
    >
      <Icon name={icon} className="size-3.5" />
      <span className="shrink-0 font-semibold tabular-nums">{time} </span>
      <span className={`truncate text-ink ${post.state === "CANCELLED" ? "line-through" : ""}`}>{text}</span>
      <span className="sr-only">, {t(`publishing.state.${post.state}`)}</span>
    </button>
  );
}

/** The chip that follows the pointer during a drag. */
export function DraggedPostChip({ drag, zone }: { drag: PostDrag; zone: string }) {
  const { language } = useTranslation();
  if (!drag.dragged) return null;
  const { post, slot, x, y } = drag.dragged;
  const { icon, className } = stateStyle(post.state);
  return (
    <div
      aria-hidden="true"
      className={`pointer-events-none fixed left-0 top-0 z-30 flex max-w-56 items-center gap-1.5 rounded-lg border px-2 py-1 text-sm shadow-raised ${className} ${slot === null ? "opacity-60" : ""}`}
      style={{ transform: `translate(${x + 8}px, ${y + 8}px) rotate(-2deg)` }}
    >
      <Icon name={icon} className="size-4" />
      <span className="shrink-0 font-semibold">{timeOfDayText(language, zone, new Date(post.dueAt))}</span>
      <span className="truncate text-ink">{post.text}</span>
    </div>
  );
}
