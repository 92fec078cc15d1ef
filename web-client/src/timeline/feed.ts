/**
 * Keeps one window of a timeline up to date, by pages at both ends and by events. Events that arrive while a page is
 * loading are applied again after the page, so that an older page never undoes a newer event.
 */
import { createValue, type Value } from "../ui/value";
import {
  type TimelineItem,
  type Window,
  windowOfPage,
  withItem,
  withNewerPage,
  withNewestItems,
  withOlderPage,
  withOldestItems,
} from "./window";

/** One page from the server, in any order. */
export type Page<Item extends TimelineItem> = Window<Item>;

export interface PageLoader<Item extends TimelineItem> {
  newest(): Promise<Page<Item>>;
  around(timestamp: string): Promise<Page<Item>>;
  older(timestamp: string): Promise<Page<Item>>;
  newer(timestamp: string): Promise<Page<Item>>;
}

export interface FeedState<Item extends TimelineItem> {
  window: Window<Item>;
  phase: "loading" | "ready" | "failed";
  error: unknown;
  /** The end at which a page is loading; null if none. */
  edge: "older" | "newer" | null;
  edgeError: unknown;
  /** Whether the last change added or removed items at the beginning. The list then keeps its distance from the end. */
  isShifted: boolean;
  /** The number of times the window was opened. When it changes, the list scrolls to `at`. */
  openCount: number;
  /** The timestamp at which the window was opened; null for the newest item. */
  at: string | null;
}

type Change<Item extends TimelineItem> = (window: Window<Item>) => Window<Item>;

export interface Feed<Item extends TimelineItem> {
  state: Value<FeedState<Item>>;
  /** Opens the window at a timestamp, or at the newest item. */
  open(at: string | null): Promise<void>;
  loadOlder(): Promise<void>;
  loadNewer(): Promise<void>;
  apply(change: Change<Item>): void;
  /** Adds or replaces the item of an event. */
  put(item: Item): void;
}

const ITEMS_MAX = 600;

export function createFeed<Item extends TimelineItem>(
  source: PageLoader<Item>,
  items_max = ITEMS_MAX,
): Feed<Item> {
  const empty: Window<Item> = { items: [], hasOlder: false, hasNewer: false };
  const state = createValue<FeedState<Item>>({
    window: empty,
    phase: "loading",
    error: null,
    edge: null,
    edgeError: null,
    isShifted: false,
    openCount: 0,
    at: null,
  });
  const update = (part: Partial<FeedState<Item>>) => state.set({ ...state.get(), isShifted: false, ...part });
  let pendingChanges: Change<Item>[] = [];
  let generation = 0;
  // While another window is loading, no page may extend the current window.
  let isOpening = false;

  /** Returns the page; null when another window was opened while it was loading. */
  async function load(page: Promise<Page<Item>>, ownGeneration: number): Promise<Page<Item> | null> {
    pendingChanges = [];
    const loaded = await page;
    return ownGeneration === generation ? loaded : null;
  }
  const withPendingChanges = (window: Window<Item>) =>
    pendingChanges.reduce((current, change) => change(current), window);

  async function open(at: string | null): Promise<void> {
    const ownGeneration = ++generation;
    isOpening = true;
    update({ edge: null, edgeError: null, ...(state.get().openCount === 0 && { phase: "loading" }) });
    try {
      const page = await load(at === null ? source.newest() : source.around(at), ownGeneration);
      if (page === null) return;
      isOpening = false;
      update({
        window: withPendingChanges(windowOfPage(page)),
        phase: "ready",
        error: null,
        openCount: state.get().openCount + 1,
        at,
      });
    } catch (error) {
      if (ownGeneration !== generation) return;
      isOpening = false;
      update({ phase: "failed", error });
    }
  }

  async function extend(edge: "older" | "newer"): Promise<void> {
    const { window, edge: loadingEdge, phase } = state.get();
    const end = edge === "older" ? window.items[0] : window.items.at(-1);
    const hasMore = edge === "older" ? window.hasOlder : window.hasNewer;
    if (isOpening || loadingEdge !== null || phase !== "ready" || !hasMore || end === undefined) return;
    update({ edge, edgeError: null });
    try {
      const page = await load(source[edge](end.timestamp), generation);
      if (page !== null) edge === "older" ? prepend(page) : append(page);
    } catch (edgeError) {
      update({ edge: null, edgeError });
    }
  }

  function prepend(page: Page<Item>): void {
    update({
      window: withPendingChanges(withOlderPage(state.get().window, page)),
      edge: null,
      isShifted: true,
    });
    queueMicrotask(() => trim(withOldestItems, false));
  }

  function append(page: Page<Item>): void {
    update({ window: withPendingChanges(withNewerPage(state.get().window, page)), edge: null });
    queueMicrotask(() => trim(withNewestItems, true));
  }

  // Trims in a separate task, because a list can keep its position only for a change at one end.
  function trim(keep: (window: Window<Item>, maxCount: number) => Window<Item>, shift: boolean): void {
    setTimeout(() => {
      const window = keep(state.get().window, items_max);
      if (window !== state.get().window && state.get().edge === null) update({ window, isShifted: shift });
    }, 0);
  }

  function apply(change: Change<Item>): void {
    pendingChanges.push(change);
    const window = change(state.get().window);
    if (window !== state.get().window) update({ window });
  }

  return {
    state,
    open,
    loadOlder: () => extend("older"),
    loadNewer: () => extend("newer"),
    apply,
    put: (item) => apply((window) => withItem(window, item)),
  };
}
