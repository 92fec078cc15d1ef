/** A list of posts that events keep up to date. New posts of other people wait behind a button. */
import { type ReactNode, useEffect, useRef, useState } from "react";
import { request, useApi } from "../api/api";
import { useViewer } from "../session/viewer";
import type { TimelineFeed } from "../timeline/feed";
import { withoutItem } from "../timeline/window";
import { Button } from "../ui/button";
import { Icon } from "../ui/icons";
import { useTranslation } from "../ui/preferences";
import { useValue } from "../ui/value";
import { FeedList } from "./feed-list";
import { ArrivedPost, type Post, type PostListEvent } from "./operations";
import { PostCard } from "./post-card";
import { withChangedPosts } from "./post-changes";

interface Props {
  /** A feed that is not open yet. */
  feed: TimelineFeed<Post>;
  /** Subscribes, and returns a function that ends the subscription. Must not change while the list is shown. */
  watch: (onEvent: (event: PostListEvent) => void, onError: () => void) => () => void;
  head: ReactNode;
  /** Shown instead of the list if it has no posts. */
  empty: ReactNode;
}

/** Opens the feed when the subscription is ready, so that no post is missing between the page and the first event. */
export function LivePosts({ feed, watch, head, empty }: Props) {
  const { t } = useTranslation();
  const viewer = useViewer();
  const top = useRef<HTMLDivElement>(null);
  const { direct } = useApi();
  const { items } = useValue(feed.state).window;
  const [arrivedIds, setArrivedIds] = useState<readonly string[]>([]);
  // A page that was loaded meanwhile may have some of them.
  const newIds = arrivedIds.filter((id) => !items.some((item) => item.id === id));

  // biome-ignore lint/correctness/useExhaustiveDependencies: `watch` does not change while the list is shown.
  useEffect(() => {
    function handleEvent(event: PostListEvent) {
      if (event.__typename === "StreamReady") {
        if (!event.resumed) reload();
      } else if (event.__typename === "PostRemoved") {
        setArrivedIds((ids) => ids.filter((id) => id !== event.postId));
        feed.apply((window) => withoutItem(window, event.postId));
      } else {
        const { id, author } = event.post;
        if (author.id === viewer.id) void showOwn(id);
        else setArrivedIds((ids) => [...ids.filter((each) => each !== id), id]);
      }
    }
    /** Shows a post that the viewer wrote elsewhere. A failed request leaves it to the next page. */
    async function showOwn(id: string) {
      if (feed.state.get().window.items.some((item) => item.id === id)) return;
      const { post } = await request(direct, ArrivedPost, { id }).catch(() => ({ post: null }));
      if (post) feed.put(post);
    }
    return watch(handleEvent, reload);
  }, [feed, direct, viewer.id]);

  function reload() {
    setArrivedIds([]);
    void feed.open(null);
  }

  function showNewPosts() {
    reload();
    top.current?.scrollIntoView({ block: "end" });
  }

  const pill = newIds.length > 0 && (
    <Button
      kind="main"
      className="rise absolute left-1/2 top-4 z-10 -translate-x-1/2 shadow-raised"
      onClick={showNewPosts}
    >
      <Icon name="up" className="size-4" />
      {t("feed.new", { count: newIds.length })}
    </Button>
  );
  return (
    <FeedList feed={feed} pill={pill} head={<div ref={top}>{head}</div>} empty={empty}>
      {(post) => (
        <PostCard
          key={post.id}
          post={post}
          onChanged={(id, change) => feed.apply((window) => withChangedPosts(window, id, change))}
          onDeleted={(id) => feed.apply((window) => withoutItem(window, id))}
        />
      )}
    </FeedList>
  );
}
