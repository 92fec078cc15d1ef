/** One topic: its header, timeline and composer. */
import { useCallback, useEffect, useRef, useState } from "react";
import { useMutation, useQuery } from "urql";
import { useApi } from "../api/api";
import { hrefOf } from "../app/router";
import { useViewer } from "../session/viewer";
import { Button } from "../ui/button";
import { Icon } from "../ui/icons";
import { useTranslation } from "../ui/preferences";
import { EmptyState, ErrorState, LoadingState } from "../ui/states";
import { useValue } from "../ui/value";
import { Composer } from "./composer";
import { JoinCommunity, TopicHeader } from "./operations";
import { useOutbox } from "./outbox";
import { Timeline } from "./timeline";
import { openTopicView, type TopicView } from "./topic-view";

/** A topic with more unread messages than this opens at the read mark instead of its end. */
const UNREAD_AT_END_MAX = 40;

export function TopicPane({ id, at }: { id: string; at: string | null }) {
  const { t } = useTranslation();
  const [{ data, error }, reload] = useQuery({
    query: TopicHeader,
    variables: { id },
    requestPolicy: "cache-and-network",
  });
  const [, join] = useMutation(JoinCommunity);
  if (error && !data?.topic) return <ErrorState error={error} retry={reload} />;
  const topic = data?.topic;
  if (!topic) return <LoadingState rows={8} />;
  return (
    <section aria-labelledby="topic-title" className="flex h-full min-h-0 flex-col">
      <header className="flex min-h-14 items-center gap-2 border-b border-line px-3 py-2 sm:px-5">
        <a
          href={hrefOf({ name: "chat" })}
          aria-label={t("back")}
          className="rounded-full p-2 text-quiet hover:bg-hover md:hidden"
        >
          <Icon name="back" />
        </a>
        <div className="min-w-0">
          <h1 id="topic-title" className="truncate text-lg font-semibold">
            {topic.title}
          </h1>
          <p className="truncate text-sm text-quiet">
            {topic.community.name} · {t("members", { count: topic.community.memberCount })}
          </p>
        </div>
      </header>
      {topic.community.joined ? (
        <JoinedTopic key={id} topic={topic} at={at} />
      ) : (
        <EmptyState
          icon="door"
          title={t("topic.notJoined", { name: topic.community.name })}
          hint={t("topic.notJoinedHint")}
        >
          <Button
            kind="main"
            onClick={() =>
              join({ id: topic.community.id }).then(() => reload({ requestPolicy: "network-only" }))
            }
          >
            {t("join")}
          </Button>
        </EmptyState>
      )}
    </section>
  );
}

interface TopicSummary {
  id: string;
  title: string;
  readUpTo: string | null;
  unreadCount: number;
  community: { id: string };
}

function JoinedTopic({ topic, at }: { topic: TopicSummary; at: string | null }) {
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

  if (!topicView) return <LoadingState rows={8} />;
  return <TopicContents topicView={topicView} topic={topic} readUpTo={initialReadState.readUpTo} />;
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
  const subscriptionError = useValue(topicView.subscriptionError);
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

  if (subscriptionError) return <ErrorState error={subscriptionError} />;
  return (
    <>
      <div className="flex min-h-0 grow flex-col">
        <Timeline
          topicView={topicView}
          topicId={topic.id}
          readUpTo={readUpTo}
          isAdmin={viewer.roles.includes("ADMIN")}
          editedId={editedId}
          setEditedId={changeEditedId}
        />
      </div>
      <Composer
        topicId={topic.id}
        topicTitle={topic.title}
        communityId={topic.community.id}
        field={field}
        onSent={handleSent}
        onEditLast={editLast}
      />
    </>
  );
}
