/** Loads the results of a search page by page. */
import { useCallback, useEffect, useState } from "react";
import { request, useApi } from "../api/api";
import { notifyFailure } from "../ui/toasts";
import {
  messageMatch,
  postMatch,
  type SearchKind,
  type SearchMatches,
  type SearchMatchPage,
  topicMatch,
  withMatchPage,
} from "./matches";
import { SearchMessages, SearchPosts, SearchTopics } from "./operations";

const TIME_ZONE = Intl.DateTimeFormat().resolvedOptions().timeZone;

export function useSearch(kind: Exclude<SearchKind, "people">, query: string) {
  const { direct } = useApi();
  const [matches, setMatches] = useState<SearchMatches | null>(null);
  const [error, setError] = useState<unknown>(null);
  const [isLoadingMore, setIsLoadingMore] = useState(false);
  const loadPage = useCallback(
    async (latest: string): Promise<SearchMatchPage> => {
      const variables = { query, latest, timeZone: TIME_ZONE };
      if (kind === "posts") {
        const { page } = await request(direct, SearchPosts, variables);
        return { ...page, items: page.items.map(postMatch) };
      }
      if (kind === "topics") {
        const { page } = await request(direct, SearchTopics, variables);
        return { ...page, items: page.items.map(topicMatch) };
      }
      const { page } = await request(direct, SearchMessages, variables);
      return { ...page, items: page.items.map(messageMatch) };
    },
    [direct, kind, query],
  );
  useEffect(() => {
    let isCurrent = true;
    setMatches(null);
    setError(null);
    if (query)
      loadPage("now").then(
        (page) => isCurrent && setMatches(withMatchPage(null, page)),
        (failure) => isCurrent && setError(failure),
      );
    return () => {
      isCurrent = false;
    };
  }, [loadPage, query]);

  async function loadMore() {
    if (!matches?.next) return;
    setIsLoadingMore(true);
    try {
      const page = await loadPage(matches.next);
      // Another search may have begun meanwhile.
      setMatches((current) => (current === matches ? withMatchPage(matches, page) : current));
    } catch (failure) {
      notifyFailure(failure);
    }
    setIsLoadingMore(false);
  }

  return { matches, error, isLoadingMore, loadMore };
}
