/**
 * The conversations, the joined communities with their topics, most recently active first, and trending topics. Events
 * update the communities that are in view.
 */
import { type RefObject, useCallback, useEffect, useRef, useState } from "react";
import { useQuery } from "urql";
import { lazyDialog } from "../../app/lazy-screen";
import { hrefOf, useRoute } from "../../app/router";
import { CommunityAvatar } from "../../ui/avatar";
import { Button, IconButton } from "../../ui/button";
import { Icon } from "../../ui/icons";
import { useTranslation } from "../../ui/preferences";
import { EmptyState, ErrorState, LoadingState } from "../../ui/states";
import { ConversationSection } from "../conversations/conversation-section";
import { type JoinedCommunity, Trending } from "../operations";
import { ThreadsLink } from "../threads/threads-link";
import { TopicLink } from "../topics/topic-link";
import { useTopics } from "../topics/topics";
import { useJoinedCommunities } from "./joined-communities";
import { followedArchives, withSubscribed } from "./visible-topics";

const NewCommunityDialog = lazyDialog<{ onClose: () => void }>(() =>
  import("./new-dialogs").then((module) => module.NewCommunityDialog),
);
const NewTopicDialog = lazyDialog<{ communityId: string; onClose: () => void }>(() =>
  import("./new-dialogs").then((module) => module.NewTopicDialog),
);

export function ChatSidebar() {
  const { t } = useTranslation();
  const route = useRoute();
  const { communities, archived, error, retry } = useJoinedCommunities("cache-and-network");
  const [isCreating, setIsCreating] = useState(false);
  const [subscribedIds, setSubscribedIds] = useState<readonly string[]>([]);
  const subscribeToCommunity = useCallback(
    (id: string) => setSubscribedIds((current) => withSubscribed(current, id)),
    [],
  );
  return (
    <nav aria-label={t("chat")} className="flex h-full flex-col">
      {route.name === "chat" && <h1 className="sr-only">Noroshi</h1>}
      <div className="flex min-h-14 items-center justify-between border-b border-line px-4">
        <h2 className="text-lg font-semibold">{t("chat")}</h2>
        <div className="flex">
          <a
            href={hrefOf({ name: "browse" })}
            aria-label={t("browse")}
            title={t("browse")}
            className="inline-flex size-9 items-center justify-center rounded-full text-quiet hover:bg-hover"
          >
            <Icon name="search" />
          </a>
          <IconButton icon="plus" label={t("community.new")} onClick={() => setIsCreating(true)} />
        </div>
      </div>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a scrollable area must be reachable by keyboard. */}
      <div className="thin-scroll min-h-0 grow overflow-y-auto p-2" tabIndex={0}>
        <ThreadsLink />
        <ConversationSection />
        {!error && !communities && <LoadingState />}
        {communities?.length === 0 && (
          <EmptyState icon="people" title={t("chat.none")} hint={t("chat.noneHint")}>
            <a href={hrefOf({ name: "browse" })} className="text-accent underline">
              {t("browse")}
            </a>
          </EmptyState>
        )}
        {communities?.map((community) => (
          <CommunityTopics
            key={community.id}
            community={community}
            isSubscribed={subscribedIds.includes(community.id)}
            onVisible={subscribeToCommunity}
          />
        ))}
        {followedArchives(archived, subscribedIds).map((community) => (
          <ArchivedCommunityLoader key={community.id} community={community} />
        ))}
        {error && <ErrorState error={error} retry={retry} />}
        <TrendingTopics />
      </div>
      {isCreating && <NewCommunityDialog onClose={() => setIsCreating(false)} />}
    </nav>
  );
}

/** Shows nothing. Follows an archived community, which appears in the list when it is reopened. */
function ArchivedCommunityLoader({ community }: { community: JoinedCommunity }) {
  useTopics(community, true);
  return null;
}

interface CommunityTopicsProps {
  community: JoinedCommunity;
  isSubscribed: boolean;
  onVisible: (id: string) => void;
}

function CommunityTopics({ community, isSubscribed, onVisible }: CommunityTopicsProps) {
  const { t } = useTranslation();
  const [isCreating, setIsCreating] = useState(false);
  const { topics, hasMore, isLoading, loadMore } = useTopics(community, isSubscribed);
  const section = useRef<HTMLElement>(null);
  useOnVisible(section, community.id, onVisible);
  return (
    <section ref={section} aria-label={community.name} className="mb-4">
      <div className="flex items-center justify-between pl-2">
        <h3 className="min-w-0 text-sm font-semibold text-quiet" title={community.description}>
          <a
            href={hrefOf({ name: "community", id: community.id, tab: "members", person: null })}
            className="flex items-center gap-2 rounded hover:text-ink hover:underline"
          >
            <CommunityAvatar community={community} size="small" />
            <span className="truncate">{community.name}</span>
          </a>
        </h3>
        <IconButton
          icon="plus"
          size="size-8"
          label={t("topic.newIn", { name: community.name })}
          onClick={() => setIsCreating(true)}
        />
      </div>
      <ul>
        {topics.map((topic) => (
          <TopicLink key={topic.id} topic={topic} />
        ))}
      </ul>
      {hasMore && (
        <Button
          kind="quiet"
          className="w-full"
          isBusy={isLoading}
          onClick={loadMore}
          aria-label={t("topic.moreIn", { name: community.name })}
        >
          {t("topic.more")}
        </Button>
      )}
      {topics.length === 0 && <p className="px-2 py-1 text-sm text-quiet">{t("community.noTopics")}</p>}
      {isCreating && <NewTopicDialog communityId={community.id} onClose={() => setIsCreating(false)} />}
    </section>
  );
}

/** Calls `onVisible` whenever the element becomes visible. */
function useOnVisible(
  element: RefObject<HTMLElement | null>,
  id: string,
  onVisible: (id: string) => void,
): void {
  useEffect(() => {
    if (!element.current) return;
    const observer = new IntersectionObserver((entries) => entries.at(-1)?.isIntersecting && onVisible(id));
    observer.observe(element.current);
    return () => observer.disconnect();
  }, [element, id, onVisible]);
}

const TRENDING_INTERVAL_MS = 60_000;

function TrendingTopics() {
  const { t } = useTranslation();
  const [{ data }, retry] = useQuery({ query: Trending, requestPolicy: "cache-and-network" });
  useEffect(() => {
    const timer = setInterval(() => retry({ requestPolicy: "network-only" }), TRENDING_INTERVAL_MS);
    return () => clearInterval(timer);
  }, [retry]);
  if (!data || data.trendingTopics.length === 0) return null;
  return (
    <section aria-labelledby="trending" className="mt-6 border-t border-line pt-4">
      <h3 id="trending" className="flex items-center gap-1.5 px-2 text-sm font-semibold text-quiet">
        <Icon name="flame" className="size-4" />
        {t("trending")}
      </h3>
      <ul className="mt-1">
        {data.trendingTopics.map(({ topic, people }) => (
          <li key={topic.id}>
            <a
              href={hrefOf({ name: "topic", id: topic.id, at: null })}
              className="flex items-baseline justify-between gap-2 rounded-lg px-2 py-1.5 hover:bg-hover"
            >
              <span className="truncate">{topic.title}</span>
              <span className="shrink-0 text-xs text-quiet tabular-nums">
                {t("people", { count: people })}
              </span>
            </a>
          </li>
        ))}
      </ul>
    </section>
  );
}
