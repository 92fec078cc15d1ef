/** A window that starts at the newest item and loads older ones: posts, notifications, received reactions. */
import { useEffect, useState } from "react";
import { createFeed, type Feed, type Page } from "../timeline/feed";
import type { Entry } from "../timeline/window";

type LoadPage<Item extends Entry> = (latest: string, inclusive: boolean) => Promise<Page<Item>>;

/** `loadPage` must not change while the component is mounted. Mount it again with another key instead. */
export function useFeed<Item extends Entry>(loadPage: LoadPage<Item>, begin = true): Feed<Item> {
  const [feed] = useState(() => {
    const unused = () => Promise.reject(new Error("A feed loads only older items."));
    const newest = () => loadPage("now", true);
    return createFeed<Item>(
      { newest, older: (than) => loadPage(than, false), newer: unused, around: unused },
      5_000,
    );
  });
  useEffect(() => {
    if (begin) void feed.open(null);
  }, [feed, begin]);
  return feed;
}
