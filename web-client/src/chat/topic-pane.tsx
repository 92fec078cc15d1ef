/** One topic: its header, timeline and composer. */
import { useCallback, useEffect, useRef, useState } from "react";
import { useQuery } from "urql";
import { request, useApi } from "../api/api";
import { errorCode } from "../api/failure";
import { hrefOf } from "../app/router";
import { mayModerate, type Powers } from "../moderation/powers";
import { mayAdminister } from "../session/permissions";
import { useViewer } from "../session/viewer";
import { Icon } from "../ui/icons";
import { useTranslation } from "../ui/preferences";
import { ErrorState, LoadingState } from "../ui/states";
import { createValue, useValue } from "../ui/value";
import { Composer } from "./composer";
import { NotJoined } from "./not-joined";
import { Communities, JOINED_PAGE_SIZE, TopicHeader } from "./operations";
import { useOutbox } from "./outbox";
import { Timeline } from "./timeline";
import { openTopicView, type TopicView } from "./topic-view";

/** A topic with more unread messages than this opens at the read mark instead of its end. */
const UNREAD_AT_END_MAX = 40;
/** Errors that end the subscription of a person who is no longer a member. */
const REMOVED_CODES = ["FORBIDDEN", "NOT_FOUND"];
const NO_ERROR = createValue(null);

export function TopicPane({ id, at }: { id: string; at: string | null }) {
  const [{ data, error }, load] = useQuery({
    query: TopicHeader,
    variables: { id },
    requestPolicy: "cache-and-network",
  });
  /** The community that the viewer was removed from while the topic was open. */
  const [removedFrom, setRemovedFrom] = useState<{ id: string; name: string } | null>(null);
  const { cached } = useApi();
  const reload = useCallback(() => load({ requestPolicy: "network-only" }), [load]);
  const topic = data?.topic;
  const community = topic?.community;

  const handleRemoval = useCallback(() => {
    if (community) setRemovedFrom({ id: community.id, name: community.name });
    reload();
    // The sidebar shows the first page.
    request(cached, Communities, { after: null, limit: JOINED_PAGE_SIZE }).catch(() => {});
  }, [community, cached, reload]);
  function handleJoined() {
    setRemovedFrom(null);
    reload();
  }

  if (removedFrom) return <NotJoined community={removedFrom} title="topic.removed" onJoined={handleJoined} />;
  if (error && !topic) return <ErrorState error={error} retry={reload} />;
  if (!topic) return <LoadingState rows={8} />;
  return (
    <section aria-labelledby="topic-title" className="flex h-full min-h-0 flex-col">
      <Header topic={topic} />
      {topic.community.joined ? (
        <JoinedTopic key={id} topic={topic} at={at} onRemoved={handleRemoval} reloadHeader={reload} />
      ) : (
        <NotJoined community={topic.community} title="topic.notJoined" onJoined={handleJoined} />
      )}
    </section>
  );
}

function Header({ topic: { title, community } }: { topic: TopicSummary }) {
  const { t } = useTranslation();
  return (
    <header className="flex min-h-14 items-center gap-2 border-b border-line px-3 py-2 sm:px-5">
      <a
        href={hrefOf({ name: "chat" })}
        aria-label={t("back")}
        className="rounded-full p-2 text-quiet hover:bg-hover md:hidden"
      >
        <Icon name="back" />
      </a>
      <div className="min-w-0 grow">
        <h1 id="topic-title" className="truncate text-lg font-semibold">
          {title}
        </h1>
        <p className="truncate text-sm text-quiet">
          {community.name} · {t("members", { count: community.memberCount })}
        </p>
      </div>
      <a
        href={hrefOf({ name: "community", id: community.id, tab: "members", person: null })}
        aria-label={t("members.of", { name: community.name })}
        title={t("members.of", { name: community.name })}
        className="inline-flex size-9 shrink-0 items-center justify-center rounded-full text-quiet hover:bg-hover hover:text-ink"
      >
        <Icon name="people" />
      </a>
    </header>
  );
}

interface TopicSummary {
  id: string;
  title: string;
  readUpTo: string | null;
  unreadCount: number;
  community: {
    id: string;
    name: string;
    memberCount: number;
    viewerRole: Powers["role"];
    viewerMutedUntil: string | null;
  };
}

interface JoinedTopicProps {
  topic: TopicSummary;
  at: string | null;
  /** Called when the viewer is no longer a member of the community. */
  onRemoved: () => void;
  /** Loads the topic's header again, with the viewer's role and restriction. */
  reloadHeader: () => void;
}

function JoinedTopic({ topic, at, onRemoved, reloadHeader }: JoinedTopicProps) {
  const api = useApi();
  const outbox = useOutbox();
  const viewer = useViewer();
  const [initialReadState] = useState({ readUpTo: topic.readUpTo, unread: topic.unreadCount });
  const [topicView, setTopicView] = useState<TopicView | null>(null);
  const requestedAt = useRef(at);

  useEffect(() => {
    const startAt =
      requestedAt.current ?? (initialReadState.unread > UNREAD_AT_END_MAX ? initialReadState.readUpTo : null);
    const view = openTopicView(api, outbox, topic.id, viewer.id, startAt);
    setTopicView(view);
    return view.stop;
  }, [api, outbox, topic.id, viewer.id, initialReadState]);

  useEffect(() => {
    if (at !== null && at !== requestedAt.current) void topicView?.feed.open(at);
    requestedAt.current = at;
  }, [at, topicView]);

  const subscriptionError = useValue(topicView?.subscriptionError ?? NO_ERROR);
  const isRemoved = subscriptionError !== null && REMOVED_CODES.includes(errorCode(subscriptionError));
  useEffect(() => {
    if (isRemoved) onRemoved();
  }, [isRemoved, onRemoved]);
  useReloadAfterRefusal(topic.id, reloadHeader);

  if (!topicView || isRemoved) return <LoadingState rows={8} />;
  if (subscriptionError) return <ErrorState error={subscriptionError} />;
  return <TopicContents topicView={topicView} topic={topic} readUpTo={initialReadState.readUpTo} />;
}

/** Reloads the header after a message was refused: the viewer may have been muted. */
function useReloadAfterRefusal(topicId: string, reloadHeader: () => void): void {
  const pending = useValue(useOutbox().pending);
  const refused = pending.filter(
    (entry) =>
      entry.topicId === topicId && (entry.reason === "failure.forbidden" || entry.reason === "message.muted"),
  ).length;
  useEffect(() => {
    if (refused > 0) reloadHeader();
  }, [refused, reloadHeader]);
}

function TopicContents({
  topicView,
  topic,
  readUpTo,
}: {
  topicView: TopicView;
  topic: TopicSummary;
  readUpTo: string | null;
}) {
  const viewer = useViewer();
  const [editedId, setEditedId] = useState<string | null>(null);
  const field = useRef<HTMLTextAreaElement>(null);

  useEffect(() => {
    if (matchMedia("(pointer: fine)").matches) field.current?.focus();
  }, []);

  const changeEditedId = useCallback((id: string | null) => {
    setEditedId(id);
    if (id === null) field.current?.focus();
  }, []);

  function editLast() {
    const { items } = topicView.feed.state.get().window;
    const lastOwnMessage = items.findLast(
      ({ author, text, deletedAt }) => author.id === viewer.id && text && !deletedAt,
    );
    if (lastOwnMessage) setEditedId(lastOwnMessage.id);
  }

  function handleSent() {
    if (topicView.feed.state.get().window.hasNewer) void topicView.feed.open(null);
  }

  const { viewerRole, viewerMutedUntil } = topic.community;
  const powers = { role: viewerRole, isAdmin: mayAdminister(viewer.roles) };
  return (
    <>
      <div className="flex min-h-0 grow flex-col">
        <Timeline
          topicView={topicView}
          topicId={topic.id}
          readUpTo={readUpTo}
          communityId={topic.community.id}
          mayModerate={mayModerate(powers)}
          editedId={editedId}
          setEditedId={changeEditedId}
        />
      </div>
      <Composer
        topicId={topic.id}
        topicTitle={topic.title}
        communityId={topic.community.id}
        mutedUntil={viewerMutedUntil}
        field={field}
        onSent={handleSent}
        onEditLast={editLast}
      />
    </>
  );
}
