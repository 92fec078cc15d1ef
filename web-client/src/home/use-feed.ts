/** A window that starts at the newest item and loads older ones: posts, notifications, received reactions. */
import { useEffect, useState } from "react";
import { createFeed, type Feed, type Page } from "../timeline/feed";
import type { Entry } from "../timeline/window";

type LoadPage<Item extends Entry> = (latest: string, inclusive: boolean) => Promise<Page<Item>>;

/** `ask` is read once, when the component mounts; change the key to change it. */
export function useFeed<Item extends Entry>(ask: LoadPage<Item>, begin = true): Feed<Item> {
  const [feed] = useState(() => {
    const unused = () => Promise.reject(new Error("This window only grows older."));
    const newest = () => ask("now", true);
    return createFeed<Item>(
      { newest, older: (than) => ask(than, false), newer: unused, around: unused },
      5_000,
    );
  });
  useEffect(() => {
    if (begin) void feed.open(null);
  }, [feed, begin]);
  return feed;
}
