/**
 * Drags a post onto a slot, an element with `data-slot`, by mouse, pen or touch. A drag begins after the mouse has
 * moved 5 pixels or the finger has rested for 350 ms, so that clicks and scrolling still work. Escape cancels.
 */
import { type PointerEvent, useEffect, useRef, useState } from "react";
import type { ScheduledPost } from "../operations";

const DRAG_DISTANCE_PX = 5;
const LONG_PRESS_MS = 350;
const SCROLL_EDGE_PX = 48;
const SCROLL_STEP_PX = 10;

export interface DraggedPost {
  post: ScheduledPost;
  /** The slot under the pointer, if any. */
  slot: string | null;
  x: number;
  y: number;
}

export interface PostDrag {
  dragged: DraggedPost | null;
  /** Returns props that make an element the drag handle of a post. */
  handleProps(post: ScheduledPost): { onPointerDown: (event: PointerEvent) => void };
}

/** Returns the state of the drag. Calls `onDrop` with the slot on which the post was dropped. */
export function useDrag(onDrop: (post: ScheduledPost, slot: string) => void): PostDrag {
  const [dragged, setDragged] = useState<DraggedPost | null>(null);
  const cancelDrag = useRef<() => void>(() => {});
  const currentOnDrop = useRef(onDrop);
  currentOnDrop.current = onDrop;
  useEffect(() => () => cancelDrag.current(), []);

  function handleProps(post: ScheduledPost) {
    return {
      onPointerDown(event: PointerEvent) {
        if (event.button !== 0 || !event.isPrimary) return;
        cancelDrag.current();
        cancelDrag.current = trackPointer(event.nativeEvent, {
          onMove: (x, y) => setDragged({ post, slot: slotAt(x, y), x, y }),
          onEnd: (x, y) => {
            setDragged(null);
            const slot = x === null || y === null ? null : slotAt(x, y);
            if (slot !== null) currentOnDrop.current(post, slot);
          },
        });
      },
    };
  }
  return { dragged, handleProps };
}

function slotAt(x: number, y: number): string | null {
  const slot = document.elementFromPoint(x, y)?.closest<HTMLElement>("[data-slot]");
  return slot?.dataset.slot ?? null;
}

interface PointerHandlers {
  onMove(x: number, y: number): void;
  /** The position is null when the drag was cancelled. */
  onEnd(x: number | null, y: number | null): void;
}

/** Tracks one pointer from its press until its release. Returns a function that cancels the drag. */
function trackPointer(press: globalThis.PointerEvent, { onMove, onEnd }: PointerHandlers): () => void {
  const scroller = (press.target as Element).closest<HTMLElement>("[data-scroller]");
  const isTouch = press.pointerType === "touch";
  let pointer = { x: press.clientX, y: press.clientY };
  let isDragging = false;
  let frame = 0;
  const longPressTimer = isTouch ? setTimeout(begin, LONG_PRESS_MS) : undefined;
  const listeners = new AbortController();
  const options = { signal: listeners.signal };

  function begin() {
    isDragging = true;
    onMove(pointer.x, pointer.y);
    frame = requestAnimationFrame(scrollAtEdge);
  }
  function finish(isDropped: boolean) {
    clearTimeout(longPressTimer);
    cancelAnimationFrame(frame);
    listeners.abort();
    if (isDragging) onEnd(isDropped ? pointer.x : null, isDropped ? pointer.y : null);
    if (isDragging && isDropped) suppressClick();
    isDragging = false;
  }
  function handleMove(event: globalThis.PointerEvent) {
    if (event.pointerId !== press.pointerId) return;
    const distance_px = Math.hypot(event.clientX - press.clientX, event.clientY - press.clientY);
    pointer = { x: event.clientX, y: event.clientY };
    if (isDragging) onMove(pointer.x, pointer.y);
    else if (distance_px > DRAG_DISTANCE_PX) isTouch ? finish(false) : begin();
  }
  function scrollAtEdge() {
    const box = scroller?.getBoundingClientRect();
    const step = box
      ? Number(pointer.y > box.bottom - SCROLL_EDGE_PX) - Number(pointer.y < box.top + SCROLL_EDGE_PX)
      : 0;
    if (scroller && step !== 0) {
      scroller.scrollTop += step * SCROLL_STEP_PX;
      onMove(pointer.x, pointer.y);
    }
    frame = requestAnimationFrame(scrollAtEdge);
  }

  addEventListener("pointermove", handleMove, options);
  const finishBy = (event: globalThis.PointerEvent, isDropped: boolean) =>
    event.pointerId === press.pointerId && finish(isDropped);
  addEventListener("pointerup", (event) => finishBy(event, true), options);
  addEventListener("pointercancel", (event) => finishBy(event, false), options);
  addEventListener("keydown", (event) => event.key === "Escape" && finish(false), options);
  // Prevents scrolling and text selection during a drag.
  addEventListener("touchmove", (event) => isDragging && event.preventDefault(), {
    ...options,
    passive: false,
  });
  addEventListener("contextmenu", (event) => isTouch && event.preventDefault(), options);
  addEventListener("selectstart", (event) => event.preventDefault(), options);
  return () => finish(false);
}

/** Suppresses the click event that the browser emits at the end of a drag. */
function suppressClick(): void {
  const stopClick = (event: Event) => event.stopPropagation();
  addEventListener("click", stopClick, { capture: true, once: true });
  setTimeout(() => removeEventListener("click", stopClick, { capture: true }), 0);
}
