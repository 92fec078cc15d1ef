/** A community's topics: the most recently active first, further pages on request, all updated live. */
import { useEffect, useState } from "react";
import { subscribe, useApi } from "../api/api";
import { notifyFailure } from "../ui/toasts";
import { CommunityEvents, type JoinedCommunity, MoreTopics, MostActiveTopics } from "./operations";
import { type TopicPage, visibleTopics } from "./visible-topics";

/** With `isSubscribed`, subscribes to the community's events, which update the cache. */
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
      // Events before the subscription are missed, so the list is reloaded.
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
  return { topics, more: hasMore, isLoading, loadMore };
}

/** The requested pages, as they are in the cache. */
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
