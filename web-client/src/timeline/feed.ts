/**
 * Keeps one window of a timeline up to date, by pages at both ends and by events. Events that arrive while a page is
 * loading are applied again after the page, so that an older page never undoes a newer event.
 */
import { createValue, type ObservableValue } from "../ui/value";
import {
  type TimelineItem,
  type TimelineWindow,
  windowOfPage,
  withItem,
  withNewerPage,
  withNewestItems,
  withOlderPage,
  withOldestItems,
} from "./window";

/** One page from the server, in any order. */
export type TimelinePage<Item extends TimelineItem> = TimelineWindow<Item>;

export interface PageLoader<Item extends TimelineItem> {
  newest(): Promise<TimelinePage<Item>>;
  around(timestamp: string): Promise<TimelinePage<Item>>;
  older(timestamp: string): Promise<TimelinePage<Item>>;
  newer(timestamp: string): Promise<TimelinePage<Item>>;
}

export interface TimelineFeedState<Item extends TimelineItem> {
  window: TimelineWindow<Item>;
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

type WindowChange<Item extends TimelineItem> = (window: TimelineWindow<Item>) => TimelineWindow<Item>;

export interface TimelineFeed<Item extends TimelineItem> {
  state: ObservableValue<TimelineFeedState<Item>>;
  /** Opens the window at a timestamp, or at the newest item. */
  open(at: string | null): Promise<void>;
  loadOlder(): Promise<void>;
  loadNewer(): Promise<void>;
  apply(change: WindowChange<Item>): void;
  /** Adds or replaces the item of an event. */
  put(item: Item): void;
}

const ITEMS_MAX = 600;

export function createFeed<Item extends TimelineItem>(
  source: PageLoader<Item>,
  itemsMax = ITEMS_MAX,
): TimelineFeed<Item> {
  const empty: TimelineWindow<Item> = { items: [], hasOlder: false, hasNewer: false };
  const state = createValue<TimelineFeedState<Item>>({
    window: empty,
    phase: "loading",
    error: null,
    edge: null,
    edgeError: null,
    isShifted: false,
    openCount: 0,
    at: null,
  });
  const update = (part: Partial<TimelineFeedState<Item>>) =>
    state.set({ ...state.get(), isShifted: false, ...part });
  /** Changes since a page began to load, which are applied again after the page; null while no page is loading. */
  let pendingChanges: WindowChange<Item>[] | null = null;
  let generation = 0;
  // While another window is loading, no page may extend the current window.
  let isOpening = false;

  /** Returns the page; null when another window was opened while it was loading. */
  async function load(
    page: Promise<TimelinePage<Item>>,
    ownGeneration: number,
  ): Promise<TimelinePage<Item> | null> {
    pendingChanges = [];
    const loaded = await page;
    return ownGeneration === generation ? loaded : null;
  }

  /** Returns the window of a loaded page with the pending changes, which are then no longer collected. */
  function withPendingChanges(window: TimelineWindow<Item>): TimelineWindow<Item> {
    const changes = pendingChanges ?? [];
    pendingChanges = null;
    return changes.reduce((current, change) => change(current), window);
  }

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
      pendingChanges = null;
      update({ phase: "failed", error });
    }
  }

  async function extend(edge: "older" | "newer"): Promise<void> {
    const { window, edge: loadingEdge, phase } = state.get();
    const end = edge === "older" ? window.items[0] : window.items.at(-1);
    const hasMore = edge === "older" ? window.hasOlder : window.hasNewer;
    if (isOpening || loadingEdge !== null || phase !== "ready" || !hasMore || end === undefined) return;
    const ownGeneration = generation;
    update({ edge, edgeError: null });
    try {
      const page = await load(source[edge](end.timestamp), ownGeneration);
      if (page !== null) edge === "older" ? prepend(page) : append(page);
    } catch (edgeError) {
      if (ownGeneration !== generation) return;
      pendingChanges = null;
      update({ edge: null, edgeError });
    }
  }

  function prepend(page: TimelinePage<Item>): void {
    update({
      window: withPendingChanges(withOlderPage(state.get().window, page)),
      edge: null,
      isShifted: true,
    });
    queueMicrotask(() => trim(withOldestItems, false));
  }

  function append(page: TimelinePage<Item>): void {
    update({ window: withPendingChanges(withNewerPage(state.get().window, page)), edge: null });
    queueMicrotask(() => trim(withNewestItems, true));
  }

  // Trims in a separate task. If one update changed both ends, the list would lose its scroll position.
  function trim(
    keep: (window: TimelineWindow<Item>, maxCount: number) => TimelineWindow<Item>,
    shift: boolean,
  ): void {
    setTimeout(() => {
      const window = keep(state.get().window, itemsMax);
      if (window !== state.get().window && state.get().edge === null) update({ window, isShifted: shift });
    }, 0);
  }

  function apply(change: WindowChange<Item>): void {
    pendingChanges?.push(change);
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
