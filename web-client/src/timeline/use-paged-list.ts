/** Loads a list page by page for a component. */
import { useCallback, useEffect, useRef, useState } from "react";
import { notifyFailure } from "../ui/toasts";
import { firstPage, loadNextPage, type PagedItems, withChange, withNewestPage } from "./paged-list";

export interface PagedList<Item> {
  /** Null until the first page is loaded. */
  items: readonly Item[] | null;
  /** Why the first page could not be loaded; null while items that the same `loadPage` loaded before are shown. */
  error: unknown;
  hasMore: boolean;
  isLoadingMore: boolean;
  loadMore: () => Promise<void>;
  /** Loads the first page again. Until the page arrives, the loaded items stay. Stable between renders. */
  reload: () => void;
  /** Loads the first page again, and puts new items before the loaded items. */
  loadNewest: () => Promise<void>;
  /** Replaces items, and removes those for which `change` returns null. */
  change: (change: (item: Item) => Item | null) => void;
}

/**
 * Calls `loadPage` with null for the first page, and with the last item for each further page. The list starts again at
 * the first page whenever `loadPage` changes, so `loadPage` must be memoised.
 */
export function usePagedList<Item>(
  loadPage: (after: Item | null) => Promise<readonly Item[]>,
  keyOf: (item: Item) => string,
): PagedList<Item> {
  const [list, setList] = useState<PagedItems<Item> | null>(null);
  const [error, setError] = useState<unknown>(null);
  const [attempt, setAttempt] = useState(0);
  const [isLoadingMore, setIsLoadingMore] = useState(false);
  const loadPageRef = useRef(loadPage);
  // The function that loaded the items.
  const loadedByRef = useRef<typeof loadPage | null>(null);
  // The newest list, which the component may not have rendered yet.
  const listRef = useRef<PagedItems<Item> | null>(null);

  const update = useCallback((newList: PagedItems<Item> | null) => {
    listRef.current = newList;
    setList(newList);
  }, []);

  // biome-ignore lint/correctness/useExhaustiveDependencies: each attempt loads the first page again.
  useEffect(() => {
    loadPageRef.current = loadPage;
    let isCurrent = true;
    loadPage(null).then(
      (page) => {
        if (!isCurrent) return;
        loadedByRef.current = loadPage;
        update(firstPage(page));
        setError(null);
      },
      (failure) => {
        if (!isCurrent) return;
        // Items of an earlier `loadPage` would be mistaken for the items of this one.
        if (loadedByRef.current !== loadPage) update(null);
        setError(failure);
      },
    );
    return () => {
      isCurrent = false;
    };
  }, [loadPage, attempt, update]);

  async function loadMore() {
    if (isLoadingMore) return;
    setIsLoadingMore(true);
    try {
      const currentList = () => (loadPageRef.current === loadPage ? listRef.current : null);
      const longerList = await loadNextPage(currentList, loadPage, keyOf);
      if (longerList) update(longerList);
    } catch (failure) {
      notifyFailure(failure);
    }
    setIsLoadingMore(false);
  }

  const loadNewest = useCallback(async () => {
    try {
      const page = await loadPage(null);
      if (loadPageRef.current === loadPage && listRef.current)
        update(withNewestPage(listRef.current, page, keyOf));
    } catch {
      // The next call loads the new items.
    }
  }, [loadPage, keyOf, update]);

  const reload = useCallback(() => setAttempt((now) => now + 1), []);

  return {
    items: list?.items ?? null,
    error: list ? null : error,
    hasMore: list?.hasMore ?? false,
    isLoadingMore,
    loadMore,
    reload,
    loadNewest,
    change: (change) => update(listRef.current && withChange(listRef.current, change)),
  };
}
