/**
 * Updates one window with its timeline: pages at both ends, and events. Events that arrive while a page is loading are
 * applied again after it, so that an older page never undoes a newer event.
 */
import { createValue, type Value } from "../ui/value";
import {
  compare,
  type Entry,
  newestOf,
  oldestOf,
  type Window,
  windowOf,
  withItem,
  withNewer,
  withOlder,
} from "./window";

/** One page from the server, in any order. */
export type Page<Item extends Entry> = Window<Item>;

export interface Source<Item extends Entry> {
  newest(): Promise<Page<Item>>;
  around(timestamp: string): Promise<Page<Item>>;
  older(than: string): Promise<Page<Item>>;
  newer(than: string): Promise<Page<Item>>;
}

export interface FeedState<Item extends Entry> {
  window: Window<Item>;
  phase: "loading" | "ready" | "failed";
  error: unknown;
  /** The end that is being extended. */
  edge: "older" | "newer" | null;
  edgeError: unknown;
  /** Whether the last change was at the window's beginning: the list then keeps its position from the end. */
  shift: boolean;
  /** Number of times the window was opened; the list scrolls to its position when it changes. */
  opened: number;
  /** Where the window was opened; null for the newest item. */
  at: string | null;
}

type Change<Item extends Entry> = (window: Window<Item>) => Window<Item>;

export interface Feed<Item extends Entry> {
  state: Value<FeedState<Item>>;
  /** Opens the window at a timestamp, or at the newest item. */
  open(at: string | null): Promise<void>;
  older(): Promise<void>;
  newer(): Promise<void>;
  apply(change: Change<Item>): void;
  /** Applies an event's item: new or changed. */
  put(item: Item): void;
}

const ITEMS_MAX = 600;

export function createFeed<Item extends Entry>(source: Source<Item>, items_max = ITEMS_MAX): Feed<Item> {
  const empty: Window<Item> = { items: [], hasOlder: false, hasNewer: false };
  const state = createValue<FeedState<Item>>({
    window: empty,
    phase: "loading",
    error: null,
    edge: null,
    edgeError: null,
    shift: false,
    opened: 0,
    at: null,
  });
  const patch = (part: Partial<FeedState<Item>>) => state.set({ ...state.get(), shift: false, ...part });
  let pendingChanges: Change<Item>[] = [];
  let generation = 0;
  // While another window is loading, no page may extend the current one.
  let opening = false;

  /** Returns null when another window was opened during the load. */
  async function load(page: Promise<Page<Item>>, ownGeneration: number): Promise<Page<Item> | null> {
    pendingChanges = [];
    const loaded = await page;
    return ownGeneration === generation ? loaded : null;
  }
  const withPendingChanges = (window: Window<Item>) =>
    pendingChanges.reduce((now, change) => change(now), window);

  async function open(at: string | null): Promise<void> {
    const ownGeneration = ++generation;
    opening = true;
    patch({ edge: null, edgeError: null, ...(state.get().opened === 0 && { phase: "loading" }) });
    try {
      const page = await load(at === null ? source.newest() : source.around(at), ownGeneration);
      if (page === null) return;
      opening = false;
      patch({
        window: withPendingChanges(windowOf(page)),
        phase: "ready",
        error: null,
        opened: state.get().opened + 1,
        at,
      });
    } catch (error) {
      if (ownGeneration !== generation) return;
      opening = false;
      patch({ phase: "failed", error });
    }
  }

  async function extend(edge: "older" | "newer"): Promise<void> {
    const { window, edge: busy, phase } = state.get();
    const end = edge === "older" ? window.items[0] : window.items.at(-1);
    const more = edge === "older" ? window.hasOlder : window.hasNewer;
    if (opening || busy !== null || phase !== "ready" || !more || end === undefined) return;
    patch({ edge, edgeError: null });
    try {
      const page = await load(source[edge](end.timestamp), generation);
      if (page !== null) edge === "older" ? prepend(page) : append(page);
    } catch (edgeError) {
      patch({ edge: null, edgeError });
    }
  }

  function prepend(page: Page<Item>): void {
    patch({ window: withPendingChanges(withOlder(state.get().window, page)), edge: null, shift: true });
    queueMicrotask(() => trim(oldestOf, false));
  }

  function append(page: Page<Item>): void {
    patch({ window: withPendingChanges(withNewer(state.get().window, page)), edge: null });
    queueMicrotask(() => trim(newestOf, true));
  }

  // Trims in a separate task, because a list can keep its position only for a change at one end.
  function trim(keep: (window: Window<Item>, most: number) => Window<Item>, shift: boolean): void {
    setTimeout(() => {
      const window = keep(state.get().window, items_max);
      if (window !== state.get().window && state.get().edge === null) patch({ window, shift });
    }, 0);
  }

  function apply(change: Change<Item>): void {
    pendingChanges.push(change);
    const window = change(state.get().window);
    if (window !== state.get().window) patch({ window });
  }

  return {
    state,
    open,
    older: () => extend("older"),
    newer: () => extend("newer"),
    apply,
    put: (item) => apply((window) => withItem(window, item)),
  };
}

/** The newer of two timestamps. */
export function newerTimestamp(a: string | null | undefined, b: string | null | undefined): string | null {
  if (!a || !b) return a || b || null;
  return compare(a, b) > 0 ? a : b;
}
