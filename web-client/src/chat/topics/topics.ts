/** A community's topics, most recently active first. Further pages load on request; events update all pages. */
import { useEffect, useState } from "react";
import { subscribe, useApi } from "../../api/api";
import { notifyFailure } from "../../ui/toasts";
import { CommunityEvents, type JoinedCommunity, MoreTopics, MostActiveTopics } from "../operations";
import { type TopicPage, visibleTopics } from "../sidebar/visible-topics";

/**
 * Returns the loaded topics. With `isSubscribed`, also subscribes to the community's events, which update the cache.
 */
export function useTopics({ id, topics: firstTopics }: JoinedCommunity, isSubscribed: boolean) {
  const { cached } = useApi();
  const [pageStarts, setPageStarts] = useState<readonly string[]>([]);
  const [isLoading, setIsLoading] = useState(false);
  const pages = usePages(id, pageStarts);
  const { topics, hasMore } = visibleTopics(firstTopics, pages);

  useEffect(() => {
    if (!isSubscribed) return;
    return subscribe(cached, CommunityEvents, { communityId: id }, ({ communityEvents: event }) => {
      if (event.__typename !== "StreamReady" || event.resumed) return;
      // Events from before the subscription are missing, so the list is loaded again.
      setPageStarts([]);
      cached.query(MostActiveTopics, { id }, { requestPolicy: "network-only" }).toPromise();
    });
  }, [cached, id, isSubscribed]);

  async function loadMore() {
    const latest = topics.at(-1)?.lastActivity;
    if (latest === undefined) return;
    setIsLoading(true);
    const variables = { communityId: id, latest };
    const { error } = await cached
      .query(MoreTopics, variables, { requestPolicy: "network-only" })
      .toPromise();
    setIsLoading(false);
    if (error) notifyFailure(error);
    // After a reload, the page no longer continues the list.
    else setPageStarts((current) => (current === pageStarts ? [...current, latest] : current));
  }
  return { topics, hasMore, isLoading, loadMore };
}

/** Returns the requested pages from the cache, and follows their changes. */
function usePages(communityId: string, pageStarts: readonly string[]): TopicPage[] {
  const { cached } = useApi();
  const [pages, setPages] = useState<Readonly<Record<string, TopicPage>>>({});
  useEffect(() => {
    const stops = pageStarts.map((latest) => {
      const { unsubscribe } = cached.query(MoreTopics, { communityId, latest }).subscribe(({ data }) => {
        if (data) setPages((current) => ({ ...current, [latest]: data.communityTopics }));
      });
      return unsubscribe;
    });
    return () => {
      for (const stop of stops) stop();
    };
  }, [cached, communityId, pageStarts]);
  return pageStarts.flatMap((latest) => pages[latest] ?? []);
}
