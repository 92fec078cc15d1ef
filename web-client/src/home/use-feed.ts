/** A feed that starts at the newest item and loads older items: posts, notifications, received reactions. */
import { useEffect, useState } from "react";
import { createFeed, type TimelineFeed, type TimelinePage } from "../timeline/feed";
import type { TimelineItem } from "../timeline/window";

type FeedPageLoader<Item extends TimelineItem> = (
  latest: string,
  inclusive: boolean,
) => Promise<TimelinePage<Item>>;

/**
 * Returns a feed. With `opensAtOnce`, loads its newest page; otherwise the caller opens it. `loadPage` must not change
 * while the component is mounted: mount the component again with another key instead.
 */
export function useFeed<Item extends TimelineItem>(
  loadPage: FeedPageLoader<Item>,
  opensAtOnce = true,
): TimelineFeed<Item> {
  const [feed] = useState(() => {
    const unsupported = () => Promise.reject(new Error("A feed loads only older items."));
    const newest = () => loadPage("now", true);
    return createFeed<Item>(
      { newest, older: (timestamp) => loadPage(timestamp, false), newer: unsupported, around: unsupported },
      5_000,
    );
  });
  useEffect(() => {
    if (opensAtOnce) void feed.open(null);
  }, [feed, opensAtOnce]);
  return feed;
}
