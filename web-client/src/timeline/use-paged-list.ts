/** Loads a list page by page for a component. */
import { useCallback, useEffect, useRef, useState } from "react";
import { notifyFailure } from "../ui/toasts";
import { firstPage, type PagedItems, withChange, withNewestPage, withNextPage } from "./paged-list";

export interface PagedList<Item> {
  /** Null until the first page is loaded. */
  items: readonly Item[] | null;
  /** Why the first page could not be loaded; null otherwise. */
  error: unknown;
  hasMore: boolean;
  isLoadingMore: boolean;
  loadMore: () => Promise<void>;
  /** Loads the first page again. Until it arrives, the known items stay. */
  reload: () => void;
  /** Loads the first page again, and puts new items before the known ones. */
  loadNewest: () => Promise<void>;
  /** Replaces items, and removes those for which `change` returns null. */
  change: (change: (item: Item) => Item | null) => void;
}

/**
 * Calls `loadPage` with null for the first page, and with the last item for each further page. The list begins anew
 * whenever `loadPage` changes, so `loadPage` must be memoised.
 */
export function usePagedList<Item>(
  loadPage: (after: Item | null) => Promise<readonly Item[]>,
  keyOf: (item: Item) => string,
): PagedList<Item> {
  const [list, setList] = useState<PagedItems<Item> | null>(null);
  const [error, setError] = useState<unknown>(null);
  const [attempt, setAttempt] = useState(0);
  const [isLoadingMore, setIsLoadingMore] = useState(false);
  const current = useRef(loadPage);

  // biome-ignore lint/correctness/useExhaustiveDependencies: each attempt loads the first page again.
  useEffect(() => {
    current.current = loadPage;
    let isCurrent = true;
    loadPage(null).then(
      (page) => {
        if (!isCurrent) return;
        setList(firstPage(page));
        setError(null);
      },
      (failure) => isCurrent && setError(failure),
    );
    return () => {
      isCurrent = false;
    };
  }, [loadPage, attempt]);

  async function loadMore() {
    const last = list?.items.at(-1);
    if (!last || isLoadingMore) return;
    setIsLoadingMore(true);
    try {
      const page = await loadPage(last);
      // The list may have begun anew in the meantime.
      setList((now) => (now === list && now ? withNextPage(now, page) : now));
    } catch (failure) {
      notifyFailure(failure);
    }
    setIsLoadingMore(false);
  }

  const loadNewest = useCallback(async () => {
    try {
      const page = await loadPage(null);
      if (current.current === loadPage) setList((now) => now && withNewestPage(now, page, keyOf));
    } catch {
      // The next attempt loads them.
    }
  }, [loadPage, keyOf]);

  return {
    items: list?.items ?? null,
    error: list ? null : error,
    hasMore: list?.hasMore ?? false,
    isLoadingMore,
    loadMore,
    reload: () => setAttempt(attempt + 1),
    loadNewest,
    change: (change) => setList((now) => now && withChange(now, change)),
  };
}
