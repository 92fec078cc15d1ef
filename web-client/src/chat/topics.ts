/** A community's topics: the most recently active first, further pages on request, all updated live. */
import { useEffect, useState } from "react";
import { listen, useApi } from "../api/api";
import { notifyFailure } from "../ui/toasts";
import { CommunityEvents, type JoinedCommunity, MoreTopics, MostActiveTopics } from "./operations";
import { type TopicPage, visibleTopics } from "./visible-topics";

/** `listened` says whether to subscribe to the community's events, which update the cache. */
export function useTopics({ id, topics: first }: JoinedCommunity, listened: boolean) {
  const { cached } = useApi();
  const [pageStarts, setPageStarts] = useState<readonly string[]>([]);
  const [isLoading, setIsLoading] = useState(false);
  const pages = usePages(id, pageStarts);
  const { topics, more } = visibleTopics(first, pages);

  useEffect(() => {
    if (!listened) return;
    return listen(cached, CommunityEvents, { communityId: id }, ({ communityEvents: event }) => {
      if (event.__typename !== "StreamReady" || event.resumed) return;
      // Events before the subscription are missed, so the list is reloaded.
      setPageStarts([]);
      cached.query(MostActiveTopics, { id }, { requestPolicy: "network-only" }).toPromise();
    });
  }, [cached, id, listened]);

  async function loadMore() {
    const latest = topics.at(-1)?.lastActivity;
    if (latest === undefined) return;
    setIsLoading(true);
    const asked = { communityId: id, latest };
    const { error } = await cached.query(MoreTopics, asked, { requestPolicy: "network-only" }).toPromise();
    setIsLoading(false);
    if (error) notifyFailure(error);
    // The list was reloaded meanwhile: the page of the old list does not continue it.
    else setPageStarts((known) => (known === pageStarts ? [...known, latest] : known));
  }
  return { topics, more, asking: isLoading, goOn: loadMore };
}

/** The requested pages, as they are in the cache. */
function usePages(communityId: string, starts: readonly string[]): TopicPage[] {
  const { cached } = useApi();
  const [pages, setPages] = useState<Readonly<Record<string, TopicPage>>>({});
  useEffect(() => {
    const stops = starts.map((latest) => {
      const { unsubscribe } = cached.query(MoreTopics, { communityId, latest }).subscribe(({ data }) => {
        if (data) setPages((known) => ({ ...known, [latest]: data.communityTopics }));
      });
      return unsubscribe;
    });
    return () => {
      for (const stop of stops) stop();
    };
  }, [cached, communityId, starts]);
  return starts.flatMap((latest) => pages[latest] ?? []);
}
