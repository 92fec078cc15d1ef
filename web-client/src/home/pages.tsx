/** The pages with feeds of posts: the home feed, everyone's posts, and the posts with a hashtag. */
import { request, subscribe, useApi } from "../api/api";
import { hrefOf, useRoute } from "../app/router";
import type { TimelineFeed } from "../timeline/feed";
import { PageTitle } from "../ui/page-title";
import { useTranslation } from "../ui/preferences";
import { EmptyState } from "../ui/states";
import { notify } from "../ui/toasts";
import { FeedTabs } from "./feed-tabs";
import { LivePosts } from "./live-posts";
import {
  HashtagEvents,
  HashtagPosts,
  HomeFeed,
  HomeFeedEvents,
  LocalEvents,
  LocalFeed,
  type Post,
} from "./operations";
import { PostComposer } from "./post-composer";
import { useFeed } from "./use-feed";

const REBUILT_AFTER_MS = 3_000;

export function HomePage() {
  const { t } = useTranslation();
  const { direct } = useApi();
  const feed: TimelineFeed<Post> = useFeed<Post>(async (latest, inclusive) => {
    const { page } = await request(direct, HomeFeed, { latest, inclusive });
    if (page.state === "REBUILDING") {
      notify(t("feed.rebuilding"));
      // An empty feed is read again. Another keeps its place.
      if (latest === "now" && page.items.length === 0)
        setTimeout(() => void feed.open(null), REBUILT_AFTER_MS);
    }
    return page;
  }, false);
  return (
    <LivePosts
      feed={feed}
      watch={(onEvent, onError) =>
        subscribe(direct, HomeFeedEvents, {}, ({ homeFeedEvents }) => onEvent(homeFeedEvents), onError)
      }
      head={
        <>
          <HomeTabs />
          <PostComposer onPosted={feed.put} />
        </>
      }
      empty={
        <EmptyState icon="home" title={t("feed.empty")} hint={t("feed.emptyHint")}>
          <a href={hrefOf({ name: "everyone" })} className="text-accent underline">
            {t("everyone")}
          </a>
        </EmptyState>
      }
    />
  );
}

function HomeTabs() {
  const route = useRoute();
  return <FeedTabs title={route.name === "everyone" ? "everyone" : "home"} names={["home", "everyone"]} />;
}

export function EveryonePage() {
  const { t } = useTranslation();
  const { direct } = useApi();
  const feed = useFeed<Post>(
    async (latest, inclusive) => (await request(direct, LocalFeed, { latest, inclusive })).page,
    false,
  );
  return (
    <LivePosts
      feed={feed}
      watch={(onEvent, onError) =>
        subscribe(direct, LocalEvents, {}, ({ localEvents }) => onEvent(localEvents), onError)
      }
      head={<HomeTabs />}
      empty={<EmptyState icon="people" title={t("feed.nobody")} hint={t("feed.nobodyHint")} />}
    />
  );
}

/** Must be mounted again for another hashtag. */
export function HashtagPage({ tag }: { tag: string }) {
  const { t } = useTranslation();
  const { direct } = useApi();
  const feed = useFeed<Post>(
    async (latest, inclusive) => (await request(direct, HashtagPosts, { tag, latest, inclusive })).page,
    false,
  );
  return (
    <LivePosts
      feed={feed}
      watch={(onEvent, onError) =>
        subscribe(direct, HashtagEvents, { tag }, ({ hashtagEvents }) => onEvent(hashtagEvents), onError)
      }
      head={
        <>
          <PageTitle name={`#${tag}`} />
          <h1 className="py-5 text-xl font-semibold">#{tag}</h1>
        </>
      }
      empty={<EmptyState icon="search" title={t("feed.noTag", { tag })} hint={t("feed.noTagHint")} />}
    />
  );
}
