/**
 * Drags a post onto a slot, an element with `data-slot`, by mouse, pen or touch. A drag begins after the mouse has moved
 * 5 pixels or the finger has rested for 350 ms, so that clicks and scrolling still work. Escape cancels.
 */
import { type PointerEvent, useEffect, useRef, useState } from "react";
import type { ScheduledPost } from "./operations";

const MIN_MOVE_PX = 5;
const MIN_REST_MS = 350;
const EDGE_PX = 48;
const EDGE_STEP_PX = 10;

export interface DraggedPost {
  post: ScheduledPost;
  /** The slot under the pointer, if any. */
  slot: string | null;
  x: number;
  y: number;
}

export interface Drag {
  dragged: DraggedPost | null;
  /** Returns props that make an element the drag handle of a post. */
  handleProps(post: ScheduledPost): { onPointerDown: (event: PointerEvent) => void };
}

/** `dropped` is called with the slot where the post was dropped. */
export function useDrag(dropped: (post: ScheduledPost, slot: string) => void): Drag {
  const [dragged, setDragged] = useState<DraggedPost | null>(null);
  const stop = useRef<() => void>(() => {});
  const drop = useRef(dropped);
  drop.current = dropped;
  useEffect(() => () => stop.current(), []);

  function handleProps(post: ScheduledPost) {
    return {
      onPointerDown(event: PointerEvent) {
        if (event.button !== 0 || !event.isPrimary) return;
        stop.current();
        stop.current = trackPointer(event.nativeEvent, {
          at: (x, y) => setDragged({ post, slot: slotAt(x, y), x, y }),
          end: (x, y) => {
            setDragged(null);
            const slot = x === null || y === null ? null : slotAt(x, y);
            if (slot !== null) drop.current(post, slot);
          },
        });
      },
    };
  }
  return { dragged, handleProps: handleProps };
}

function slotAt(x: number, y: number): string | null {
  const slot = document.elementFromPoint(x, y)?.closest<HTMLElement>("[data-slot]");
  return slot?.dataset.slot ?? null;
}

interface PointerHandlers {
  at(x: number, y: number): void;
  /** The position is null when the drag was cancelled. */
  end(x: number | null, y: number | null): void;
}

/** Tracks one pointer after its press. Returns a function that cancels the drag. */
function trackPointer(press: globalThis.PointerEvent, { at, end }: PointerHandlers): () => void {
  const scroller = (press.target as Element).closest<HTMLElement>("[data-scroller]");
  const finger = press.pointerType === "touch";
  let pointer = { x: press.clientX, y: press.clientY };
  let active = false;
  let frame = 0;
  const rested = finger ? setTimeout(begin, MIN_REST_MS) : undefined;
  const listeners = new AbortController();
  const options = { signal: listeners.signal };

  function begin() {
    active = true;
    at(pointer.x, pointer.y);
    frame = requestAnimationFrame(scrollAtEdge);
  }
  function finish(dropped: boolean) {
    clearTimeout(rested);
    cancelAnimationFrame(frame);
    listeners.abort();
    if (active) end(dropped ? pointer.x : null, dropped ? pointer.y : null);
    if (active && dropped) suppressClick();
    active = false;
  }
  function handleMove(event: globalThis.PointerEvent) {
    const away = Math.hypot(event.clientX - press.clientX, event.clientY - press.clientY);
    pointer = { x: event.clientX, y: event.clientY };
    if (active) at(pointer.x, pointer.y);
    else if (away > MIN_MOVE_PX) finger ? finish(false) : begin();
  }
  function scrollAtEdge() {
    const box = scroller?.getBoundingClientRect();
    const step = box ? Number(pointer.y > box.bottom - EDGE_PX) - Number(pointer.y < box.top + EDGE_PX) : 0;
    if (scroller && step !== 0) {
      scroller.scrollTop += step * EDGE_STEP_PX;
      at(pointer.x, pointer.y);
    }
    frame = requestAnimationFrame(scrollAtEdge);
  }

  addEventListener("pointermove", handleMove, options);
  addEventListener("pointerup", () => finish(true), options);
  addEventListener("pointercancel", () => finish(false), options);
  addEventListener("keydown", (event) => event.key === "Escape" && finish(false), options);
  // Prevents scrolling and text selection during a drag.
  addEventListener("touchmove", (event) => active && event.preventDefault(), { ...options, passive: false });
  addEventListener("contextmenu", (event) => finger && event.preventDefault(), options);
  addEventListener("selectstart", (event) => event.preventDefault(), options);
  return () => finish(false);
}

/** Suppresses the click at the end of a drag. */
function suppressClick(): void {
  const swallow = (event: Event) => event.stopPropagation();
  addEventListener("click", swallow, { capture: true, once: true });
  setTimeout(() => removeEventListener("click", swallow, { capture: true }), 0);
}
