/** The pages with feeds of posts: the home feed, everyone's posts, and the posts with a hashtag. */
import { useEffect, useRef, useState } from "react";
import { request, subscribe, useApi } from "../api/api";
import { hrefOf, usePlace } from "../app/router";
import { useViewer } from "../session/viewer";
import { withItem, withoutItem } from "../timeline/window";
import { Button } from "../ui/button";
import { Icon } from "../ui/icons";
import { useTranslation } from "../ui/preferences";
import { EmptyState } from "../ui/states";
import { notify } from "../ui/toasts";
import { FeedList } from "./feed-list";
import { FeedTabs } from "./feed-tabs";
import { HashtagPosts, HomeFeed, HomeFeedEvents, LocalFeed, type Post } from "./operations";
import { PostCard } from "./post-card";
import { PostComposer } from "./post-composer";
import { useFeed } from "./use-feed";

export function HomePage() {
  const { t } = useTranslation();
  const { direct } = useApi();
  const viewer = useViewer();
  const top = useRef<HTMLDivElement>(null);
  const [newPosts, setNewPosts] = useState<readonly Post[]>([]);
  const feed = useFeed<Post>(async (latest, inclusive) => {
    const { page } = await request(direct, HomeFeed, { latest, inclusive });
    if (page.state === "REBUILDING") notify(t("feed.rebuilding"));
    return page;
  }, false);

  useEffect(
    () =>
      subscribe(direct, HomeFeedEvents, {}, ({ homeFeedEvents: event }) => {
        if (event.__typename === "StreamReady") {
          if (event.resumed) return;
          setNewPosts([]);
          void feed.open(null);
        } else if (event.__typename === "PostRemoved") {
          setNewPosts((posts) => posts.filter(({ id }) => id !== event.postId));
          feed.apply((window) => withoutItem(window, event.postId));
        } else {
          const { post } = event;
          const isLoaded = feed.state.get().window.items.some(({ id }) => id === post.id);
          if (isLoaded || post.author.id === viewer.id) feed.put(post);
          else setNewPosts((posts) => [...posts.filter(({ id }) => id !== post.id), post]);
        }
      }),
    [direct, feed, viewer.id],
  );

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
  const head = (
    <div ref={top}>
      <Tabs />
      <PostComposer onPosted={feed.put} />
    </div>
  );
  return (
    <FeedList
      feed={feed}
      pill={pill}
      head={head}
      empty={
        <EmptyState icon="home" title={t("feed.empty")} hint={t("feed.emptyHint")}>
          <a href={hrefOf({ name: "everyone" })} className="text-accent underline">
            {t("everyone")}
          </a>
        </EmptyState>
      }
    >
      {(post) => (
        <PostCard
          key={post.id}
          post={post}
          onDeleted={(id) => feed.apply((window) => withoutItem(window, id))}
        />
      )}
    </FeedList>
  );
}

function Tabs() {
  const place = usePlace();
  return <FeedTabs title={place.name === "everyone" ? "everyone" : "home"} names={["home", "everyone"]} />;
}

export function EveryonePage() {
  const { t } = useTranslation();
  const { direct } = useApi();
  const feed = useFeed<Post>(
    async (latest, inclusive) => (await request(direct, LocalFeed, { latest, inclusive })).page,
  );
  return (
    <FeedList
      feed={feed}
      head={<Tabs />}
      empty={<EmptyState icon="people" title={t("feed.nobody")} hint={t("feed.nobodyHint")} />}
    >
      {(post) => (
        <PostCard
          key={post.id}
          post={post}
          onDeleted={(id) => feed.apply((window) => withoutItem(window, id))}
        />
      )}
    </FeedList>
  );
}

export function HashtagPage({ tag }: { tag: string }) {
  const { t } = useTranslation();
  const { direct } = useApi();
  const feed = useFeed<Post>(
    async (latest, inclusive) => (await request(direct, HashtagPosts, { tag, latest, inclusive })).page,
  );
  return (
    <FeedList
      feed={feed}
      head={<h1 className="py-5 text-xl font-semibold">#{tag}</h1>}
      empty={<EmptyState icon="search" title={t("feed.noTag", { tag })} hint={t("feed.noTagHint")} />}
    >
      {(post) => (
        <PostCard
          key={post.id}
          post={post}
          onDeleted={(id) => feed.apply((window) => withoutItem(window, id))}
        />
      )}
    </FeedList>
  );
}
