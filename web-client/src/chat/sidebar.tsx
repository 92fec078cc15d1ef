/** The joined communities with their topics, the liveliest first, and what is trending. */
import { useEffect, useState } from "react";
import { useQuery } from "urql";
import { listen, useApi } from "../api/api";
import { addressOf, usePlace } from "../app/router";
import { compare } from "../timeline/window";
import { IconButton } from "../ui/button";
import { Icon } from "../ui/icons";
import { useWords } from "../ui/preferences";
import { Empty, Failed, Loading } from "../ui/states";
import { NewCommunity, NewTopic } from "./new";
import { Communities, CommunityEvents, type JoinedCommunity, type TopicRow, Trending } from "./operations";

const LISTENED_MAX = 40;

export function Sidebar() {
  const { t } = useWords();
  const [{ data, error }, again] = useQuery({ query: Communities, requestPolicy: "cache-and-network" });
  const [founding, setFounding] = useState(false);
  const communities = data?.communities;
  useCommunityEvents(communities?.map(({ id }) => id) ?? [], () => again({ requestPolicy: "network-only" }));
  return (
    <nav aria-label={t("chat")} className="flex h-full flex-col">
      <div className="flex min-h-14 items-center justify-between border-b border-line px-4">
        <h2 className="text-lg font-semibold">{t("chat")}</h2>
        <div className="flex">
          <a
            href={addressOf({ name: "browse" })}
            aria-label={t("browse")}
            title={t("browse")}
            className="inline-flex size-9 items-center justify-center rounded-full text-quiet hover:bg-hover"
          >
            <Icon name="search" />
          </a>
          <IconButton icon="plus" label={t("community.new")} onClick={() => setFounding(true)} />
        </div>
      </div>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls can be scrolled by keys. */}
      <div className="thin-scroll min-h-0 grow overflow-y-auto p-2" tabIndex={0}>
        {error && !data && <Failed error={error} again={() => again({ requestPolicy: "network-only" })} />}
        {!error && !data && <Loading />}
        {communities?.length === 0 && (
          <Empty icon="people" title={t("chat.none")} hint={t("chat.noneHint")}>
            <a href={addressOf({ name: "browse" })} className="text-accent underline">
              {t("browse")}
            </a>
          </Empty>
        )}
        {communities?.map((community) => (
          <CommunityTopics key={community.id} community={community} />
        ))}
        <TrendingTopics />
      </div>
      {founding && <NewCommunity onClose={() => setFounding(false)} />}
    </nav>
  );
}

/** Events write themselves into the cache; a new topic, or a break in the stream, asks for the list again. */
function useCommunityEvents(ids: string[], again: () => void): void {
  const { cached } = useApi();
  const joined = ids.slice(0, LISTENED_MAX).join(" ");
  // biome-ignore lint/correctness/useExhaustiveDependencies: listening begins anew only with other communities.
  useEffect(() => {
    const stops = joined
      .split(" ")
      .filter(Boolean)
      .map((communityId) => {
        let begun = false;
        return listen(cached, CommunityEvents, { communityId }, ({ communityEvents: event }) => {
          if (event.__typename === "TopicCreated") again();
          if (event.__typename === "StreamReady" && begun && !event.resumed) again();
          begun = true;
        });
      });
    return () => {
      for (const stop of stops) stop();
    };
  }, [cached, joined]);
}

function CommunityTopics({ community }: { community: JoinedCommunity }) {
  const { t } = useWords();
  const [opening, setOpening] = useState(false);
  const topics = [...community.topics].sort((a, b) => compare(b.lastActivity, a.lastActivity));
  return (
    <section aria-label={community.name} className="mb-4">
      <div className="flex items-center justify-between pl-2">
        <h3 className="truncate text-sm font-semibold text-quiet" title={community.description}>
          {community.name}
        </h3>
        <IconButton
          icon="plus"
          size="size-8"
          label={t("topic.newIn", { name: community.name })}
          onClick={() => setOpening(true)}
        />
      </div>
      <ul>
        {topics.map((topic) => (
          <TopicLink key={topic.id} topic={topic} />
        ))}
      </ul>
      {topics.length === 0 && <p className="px-2 py-1 text-sm text-quiet">{t("community.noTopics")}</p>}
      {opening && <NewTopic communityId={community.id} onClose={() => setOpening(false)} />}
    </section>
  );
}

function TopicLink({ topic }: { topic: TopicRow }) {
  const { t } = useWords();
  const place = usePlace();
  const here = place.name === "topic" && place.id === topic.id;
  const unread = here ? 0 : topic.unreadCount;
  const { lastMessage } = topic;
  return (
    <li>
      <a
        href={addressOf({ name: "topic", id: topic.id, at: null })}
        aria-current={here ? "page" : undefined}
        data-topic={topic.id}
        className="flex items-center gap-2 rounded-lg px-2 py-1.5 hover:bg-hover aria-[current]:bg-glow"
      >
        <span className="min-w-0 grow">
          <span className={`block truncate ${unread > 0 ? "font-semibold" : ""}`}>{topic.title}</span>
          {lastMessage && (
            <span className="block truncate text-sm text-quiet">
              {lastMessage.author.name}: {lastMessage.text || lastMessage.stamp?.name || "…"}
            </span>
          )}
        </span>
        {unread > 0 && (
          <span className="rounded-full bg-accent px-2 text-xs font-semibold leading-5 text-on-accent tabular-nums">
            {unread >= 100 ? "99+" : unread}
            <span className="sr-only"> {t("unread")}</span>
          </span>
        )}
      </a>
    </li>
  );
}

const TRENDING_EVERY_MS = 60_000;

function TrendingTopics() {
  const { t } = useWords();
  const [{ data }, again] = useQuery({ query: Trending, requestPolicy: "cache-and-network" });
  useEffect(() => {
    const timer = setInterval(() => again({ requestPolicy: "network-only" }), TRENDING_EVERY_MS);
    return () => clearInterval(timer);
  }, [again]);
  if (!data || data.trendingTopics.length === 0) return null;
  return (
    <section aria-labelledby="trending" className="mt-6 border-t border-line pt-4">
      <h3 id="trending" className="flex items-center gap-1.5 px-2 text-sm font-semibold text-quiet">
        <Icon name="flame" className="size-4" />
        {t("trending")}
      </h3>
      <ul className="mt-1">
        {data.trendingTopics.map(({ topic, messagesPerMinute }) => (
          <li key={topic.id}>
            <a
              href={addressOf({ name: "topic", id: topic.id, at: null })}
              className="flex items-baseline justify-between gap-2 rounded-lg px-2 py-1.5 hover:bg-hover"
            >
              <span className="truncate">{topic.title}</span>
              <span className="shrink-0 text-xs text-quiet tabular-nums">
                {t("perMinute", { count: messagesPerMinute.toFixed(1) })}
              </span>
            </a>
          </li>
        ))}
      </ul>
    </section>
  );
}
