/**
 * Drags a post onto a slot, an element with `data-slot`, by mouse, pen or touch. A mouse has to move a little, a
 * finger to rest a moment, so that clicks and scrolling still work. Escape cancels.
 */
import { type PointerEvent, useEffect, useRef, useState } from "react";
import type { Scheduled } from "./operations";

const MOVED_PX = 5;
const RESTED_MS = 350;
const EDGE_PX = 48;
const EDGE_STEP_PX = 10;

export interface Dragged {
  post: Scheduled;
  /** The slot under the pointer, if any. */
  slot: string | null;
  x: number;
  y: number;
}

export interface Drag {
  dragged: Dragged | null;
  /** Props that make an element the handle of a post. */
  grip(post: Scheduled): { onPointerDown: (event: PointerEvent) => void };
}

/** `dropped` is called with the slot where the post was dropped. */
export function useDrag(dropped: (post: Scheduled, slot: string) => void): Drag {
  const [dragged, setDragged] = useState<Dragged | null>(null);
  const stop = useRef<() => void>(() => {});
  const drop = useRef(dropped);
  drop.current = dropped;
  useEffect(() => () => stop.current(), []);

  function grip(post: Scheduled) {
    return {
      onPointerDown(event: PointerEvent) {
        if (event.button !== 0 || !event.isPrimary) return;
        stop.current();
        stop.current = follow(event.nativeEvent, {
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
  return { dragged, grip };
}

function slotAt(x: number, y: number): string | null {
  const slot = document.elementFromPoint(x, y)?.closest<HTMLElement>("[data-slot]");
  return slot?.dataset.slot ?? null;
}

interface Follower {
  at(x: number, y: number): void;
  /** Without a position when the drag was cancelled. */
  end(x: number | null, y: number | null): void;
}

/** Follows one pointer from its press. The returned function cancels the drag. */
function follow(press: globalThis.PointerEvent, { at, end }: Follower): () => void {
  const scroller = (press.target as Element).closest<HTMLElement>("[data-scroller]");
  const finger = press.pointerType === "touch";
  let here = { x: press.clientX, y: press.clientY };
  let active = false;
  let frame = 0;
  const rested = finger ? setTimeout(begin, RESTED_MS) : undefined;
  const over = new AbortController();
  const options = { signal: over.signal };

  function begin() {
    active = true;
    at(here.x, here.y);
    frame = requestAnimationFrame(scrollAtEdge);
  }
  function finish(dropped: boolean) {
    clearTimeout(rested);
    cancelAnimationFrame(frame);
    over.abort();
    if (active) end(dropped ? here.x : null, dropped ? here.y : null);
    if (active && dropped) swallowClick();
    active = false;
  }
  function moved(event: globalThis.PointerEvent) {
    const away = Math.hypot(event.clientX - press.clientX, event.clientY - press.clientY);
    here = { x: event.clientX, y: event.clientY };
    if (active) at(here.x, here.y);
    else if (away > MOVED_PX) finger ? finish(false) : begin();
  }
  function scrollAtEdge() {
    const box = scroller?.getBoundingClientRect();
    const step = box ? Number(here.y > box.bottom - EDGE_PX) - Number(here.y < box.top + EDGE_PX) : 0;
    if (scroller && step !== 0) {
      scroller.scrollTop += step * EDGE_STEP_PX;
      at(here.x, here.y);
    }
    frame = requestAnimationFrame(scrollAtEdge);
  }

  addEventListener("pointermove", moved, options);
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
function swallowClick(): void {
  const swallow = (event: Event) => event.stopPropagation();
  addEventListener("click", swallow, { capture: true, once: true });
  setTimeout(() => removeEventListener("click", swallow, { capture: true }), 0);
}
