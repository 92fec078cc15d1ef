/** A list of posts that events keep up to date. New posts of other people wait behind a button. */
import { type ReactNode, useEffect, useRef, useState } from "react";
import { useViewer } from "../session/viewer";
import type { TimelineFeed } from "../timeline/feed";
import { withItem, withoutItem } from "../timeline/window";
import { Button } from "../ui/button";
import { Icon } from "../ui/icons";
import { useTranslation } from "../ui/preferences";
import { FeedList } from "./feed-list";
import type { Post, PostListEvent } from "./operations";
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
  const [newPosts, setNewPosts] = useState<readonly Post[]>([]);

  // biome-ignore lint/correctness/useExhaustiveDependencies: `watch` does not change while the list is shown.
  useEffect(() => {
    function handleEvent(event: PostListEvent) {
      if (event.__typename === "StreamReady") {
        if (!event.resumed) reload();
      } else if (event.__typename === "PostRemoved") {
        setNewPosts((posts) => posts.filter(({ id }) => id !== event.postId));
        feed.apply((window) => withoutItem(window, event.postId));
      } else {
        const { post } = event;
        const isLoaded = feed.state.get().window.items.some(({ id }) => id === post.id);
        if (isLoaded || post.author.id === viewer.id) feed.put(post);
        else setNewPosts((posts) => [...posts.filter(({ id }) => id !== post.id), post]);
      }
    }
    function reload() {
      setNewPosts([]);
      void feed.open(null);
    }
    return watch(handleEvent, reload);
  }, [feed, viewer.id]);

  function showNewPosts() {
    feed.apply((window) => newPosts.reduce(withItem, window));
    setNewPosts([]);
    top.current?.scrollIntoView({ block: "end" });
  }

  const pill = newPosts.length > 0 && (
    <Button
      kind="main"
      className="rise absolute left-1/2 top-4 z-10 -translate-x-1/2 shadow-raised"
      onClick={showNewPosts}
    >
      <Icon name="up" className="size-4" />
      {t("feed.new", { count: newPosts.length })}
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
