/** One topic: its header, timeline and composer, and the open thread beside them. */
import { type ReactNode, useCallback, useEffect, useRef, useState } from "react";
import { useQuery } from "urql";
import { request, useApi } from "../../api/api";
import { navigate } from "../../app/router";
import { PresenceProvider } from "../../presence/presence";
import { ErrorState, LoadingState } from "../../ui/states";
import { ConversationPane } from "../conversations/conversation-pane";
import { Communities, JOINED_PAGE_SIZE, TopicHeader } from "../operations";
import { ThreadOpenerProvider } from "../threads/opener";
import { ThreadPanel } from "../threads/thread-panel";
import { ThreadRedirect } from "../threads/thread-redirect";
import { isConversation, JoinedTopic } from "./joined-topic";
import { NotJoinedNotice } from "./not-joined";
import { TopicHeading, type TopicSummary } from "./topic-heading";

interface Props {
  id: string;
  at: string | null;
  /** Id of the message whose thread is open; null if none is. */
  thread: string | null;
  /** Timestamp of the reply to show; null for the latest ones. */
  reply: string | null;
}

export function TopicPane({ id, at, thread, reply }: Props) {
  const [{ data, error, stale }, load] = useQuery({
    query: TopicHeader,
    variables: { id },
    requestPolicy: "cache-and-network",
  });
  /** The community that the viewer was removed from while the topic was open. */
  const [removedFrom, setRemovedFrom] = useState<TopicSummary["community"] | null>(null);
  const { cached } = useApi();
  const reload = useCallback(() => load({ requestPolicy: "network-only" }), [load]);
  const topic = data?.topic;
  const community = topic?.community;

  const handleRemoval = useCallback(() => {
    if (community?.id === id) return navigate({ name: "chat" });
    if (community) setRemovedFrom(community);
    reload();
    // Updates the cached list of the sidebar. Of its pages, only the first is loaded again.
    request(cached, Communities, { after: null, limit: JOINED_PAGE_SIZE }).catch(() => {});
  }, [id, community, cached, reload]);
  function handleJoined() {
    setRemovedFrom(null);
    reload();
  }

  const [isCovered, setIsCovered] = useState(false);
  const { openThread, closeThread } = useThreadNavigation(id, at, thread);
  useFocusAfterClose(thread);

  if (removedFrom)
    return <NotJoinedNotice community={removedFrom} title="topic.removed" onJoined={handleJoined} />;
  if (error && !topic) return <ErrorState error={error} retry={reload} />;
  if (!topic) return <LoadingState rows={8} />;
  if (topic.parentMessageId !== null) return <ThreadRedirect parentId={topic.parentMessageId} reply={at} />;
  const renderJoined = (shown: TopicSummary, note?: ReactNode, replacement?: ReactNode) => (
    <ThreadOpenerProvider value={openThread}>
      <JoinedTopic
        key={id}
        topic={shown}
        isStale={stale}
        at={at}
        note={note}
        replacement={replacement}
        onRemoved={handleRemoval}
        reloadHeader={reload}
        side={(topicView) =>
          thread !== null && (
            <ThreadPanel
              key={thread}
              topic={shown}
              topicView={topicView}
              parentId={thread}
              reply={reply}
              onClose={closeThread}
              onCover={setIsCovered}
            />
          )
        }
      />
    </ThreadOpenerProvider>
  );
  if (isConversation(topic))
    return (
      <PresenceProvider communityId={id}>
        <ConversationPane key={id} topic={topic} isCovered={isCovered}>
          {(title, note, replacement) => renderJoined({ ...topic, title }, note, replacement)}
        </ConversationPane>
      </PresenceProvider>
    );
  return (
    <section aria-labelledby="topic-title" className="relative flex h-full min-h-0 flex-col">
      <TopicHeading topic={topic} isCovered={isCovered} />
      {topic.community.joined ? (
        <PresenceProvider communityId={topic.community.id}>{renderJoined(topic)}</PresenceProvider>
      ) : (
        <NotJoinedNotice community={topic.community} title="topic.notJoined" onJoined={handleJoined} />
      )}
    </section>
  );
}

/** Returns the functions that open and close a thread. */
function useThreadNavigation(id: string, at: string | null, thread: string | null) {
  /** The address of the thread that was opened last, if the address before it is that of the topic alone. */
  const opened = useRef<string | null>(null);
  const openThread = useCallback(
    (message: { id: string }) => {
      navigate({ name: "topic", id, at, thread: message.id });
      opened.current = thread === null ? location.hash : null;
    },
    [id, at, thread],
  );
  const closeThread = useCallback(() => {
    if (location.hash === opened.current) history.back();
    else navigate({ name: "topic", id, at });
  }, [id, at]);
  return { openThread, closeThread };
}

/** Moves the focus to the message whose thread was closed, also by the browser's button "Back". */
function useFocusAfterClose(thread: string | null): void {
  const openThread = useRef(thread);
  useEffect(() => {
    if (thread === null && openThread.current !== null)
      document.getElementById(`message-${openThread.current}`)?.focus({ preventScroll: true });
    openThread.current = thread;
  }, [thread]);
}
