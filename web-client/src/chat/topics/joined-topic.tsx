/** The messages of a topic that the viewer has joined, and the message field. */
import { type ReactNode, useCallback, useEffect, useMemo, useRef, useState } from "react";
import { useApi } from "../../api/api";
import { errorCode } from "../../api/failure";
import { dropAreaProps } from "../../files/drops";
import { mayModerate } from "../../moderation/rights";
import { TypingLine } from "../../presence/typing-line";
import { mayAdminister } from "../../session/permissions";
import { useViewer } from "../../session/viewer";
import { ErrorState, LoadingState } from "../../ui/states";
import { createValue, useValue } from "../../ui/value";
import { LARGE, useIsAtLeast } from "../../ui/window-width";
import { MessageComposer } from "../composer/composer";
import { isIn, useOutbox } from "../composer/outbox";
import { nextMessageAt } from "../composer/slow-mode";
import { MessageTimeline } from "../messages/timeline";
import type { QuotedMessage } from "../operations";
import { QuoterProvider } from "../quotes/quoter";
import { PinsBar } from "./pins-bar";
import type { StoredReadState } from "./read-state";
import type { TopicSummary } from "./topic-heading";
import { openTopicView, type TopicView } from "./topic-view";

/** Errors that end the subscription of a person who is no longer a member. */
const REMOVED_CODES = ["FORBIDDEN", "NOT_FOUND"];
const NO_ERROR = createValue(null);

/** Returns whether the topic holds the messages of a conversation. Then its community is made up and has its id. */
export const isConversation = ({ id, community }: TopicSummary) => id === community.id;

interface JoinedTopicProps {
  topic: TopicSummary;
  /** Whether the topic comes from the cache, and is being loaded again. Its read mark may then be old. */
  isStale: boolean;
  at: string | null;
  /** Set for a thread: whether its topic is a conversation. */
  isInConversation?: boolean;
  /** Label of the message field; by default with the title of the topic. */
  label?: string;
  /** Shown until the topic is open; by default rows that stand for messages. */
  placeholder?: ReactNode;
  /** Position of the caret in the field that the message field replaces; null if that field did not have the focus. */
  caret?: number | null;
  /** The quoted message of the field that the message field replaces; null without a quote. */
  initialQuote?: QuotedMessage | null;
  /** Called when the topic is open, so that the messages and the field take the place of the placeholder. */
  onOpened?: () => void;
  /** Shown above the message field. */
  note?: ReactNode;
  /** Shown instead of the message field, unless it is empty. */
  replacement?: ReactNode;
  /** Renders what stands beside the messages, such as an open thread. */
  side?: (topicView: TopicView) => ReactNode;
  /** Called when the viewer is no longer a member of the community. */
  onRemoved: () => void;
  /** Loads the topic's header again, with the viewer's role and restriction. */
  reloadHeader: () => void;
}

export function JoinedTopic(props: JoinedTopicProps) {
  const { topic, isStale, at, onRemoved, reloadHeader, onOpened } = props;
  const api = useApi();
  const outbox = useOutbox();
  const viewer = useViewer();
  const [stored, setStored] = useState<StoredReadState | null>(null);
  if (!stored && !isStale) setStored({ readUpTo: topic.readUpTo, unreadCount: topic.unreadCount });
  const [topicView, setTopicView] = useState<TopicView | null>(null);
  const withRoles = mayModerate({ role: topic.community.viewerRole, isAdmin: mayAdminister(viewer.roles) });
  const requestedAt = useRef(at);

  useEffect(() => {
    if (!stored) return;
    const view = openTopicView(api, outbox, topic.id, {
      viewerId: viewer.id,
      parentId: topic.parentMessageId,
      timestamp: requestedAt.current,
      stored,
      withRoles,
      onTopicChanged: reloadHeader,
    });
    setTopicView(view);
    onOpened?.();
    return view.stop;
  }, [api, outbox, topic.id, topic.parentMessageId, viewer.id, stored, withRoles, reloadHeader, onOpened]);

  useEffect(() => {
    if (at !== null && at !== requestedAt.current) void topicView?.feed.open(at);
    requestedAt.current = at;
  }, [at, topicView]);

  const subscriptionError = useValue(topicView?.subscriptionError ?? NO_ERROR);
  const isRemoved = subscriptionError !== null && REMOVED_CODES.includes(errorCode(subscriptionError));
  useEffect(() => {
    if (isRemoved) onRemoved();
  }, [isRemoved, onRemoved]);
  useReloadAfterRefusal(topic, reloadHeader);

  if (!topicView && props.placeholder !== undefined) return props.placeholder;
  if (!topicView || isRemoved) return <LoadingState rows={8} />;
  if (subscriptionError) return <ErrorState error={subscriptionError} />;
  return <TopicContents {...props} topicView={topicView} />;
}

/** Reloads the header after a message was refused: the viewer may have been muted, or the topic slowed. */
function useReloadAfterRefusal({ id, parentMessageId }: TopicSummary, reloadHeader: () => void): void {
  const pending = useValue(useOutbox().pending);
  const refused = pending.filter(
    (entry) =>
      (entry.topicId === id || isIn(entry, id, parentMessageId)) &&
      ["failure.forbidden", "message.muted", "message.tooMany"].includes(entry.reason ?? ""),
  ).length;
  useEffect(() => {
    if (refused > 0) reloadHeader();
  }, [refused, reloadHeader]);
}

interface TopicContentsProps
  extends Pick<
    JoinedTopicProps,
    "topic" | "at" | "isInConversation" | "label" | "caret" | "initialQuote" | "note" | "replacement" | "side"
  > {
  topicView: TopicView;
}

function TopicContents(props: TopicContentsProps) {
  const { topicView, topic, caret = null, note, replacement } = props;
  const viewer = useViewer();
  const [editedId, setEditedId] = useState<string | null>(null);
  const [quoted, setQuoted] = useState<QuotedMessage | null>(props.initialQuote ?? null);
  const field = useRef<HTMLTextAreaElement>(null);

  useEffect(() => {
    if (!field.current || (caret === null && !matchMedia("(pointer: fine)").matches)) return;
    const position = caret ?? field.current.value.length;
    field.current.focus();
    field.current.setSelectionRange(position, position);
  }, [caret]);

  const changeEditedId = useCallback((id: string | null) => {
    setEditedId(id);
    if (id === null) field.current?.focus();
  }, []);

  const quote = useCallback((message: QuotedMessage) => {
    setQuoted(message);
    field.current?.focus();
  }, []);
  const endQuote = useCallback(() => {
    setQuoted(null);
    field.current?.focus();
  }, []);

  function editLast() {
    const { items } = topicView.feed.state.get().window;
    const lastOwnMessage = items.findLast(
      ({ author, text, deletedAt, threadReply }) =>
        author.id === viewer.id && text && !deletedAt && !threadReply,
    );
    if (lastOwnMessage) setEditedId(lastOwnMessage.id);
  }

  function handleSent() {
    if (topicView.feed.state.get().window.hasNewer) void topicView.feed.open(null);
  }

  const { viewerRole, viewerMutedUntil, archivedAt } = topic.community;
  const isInConversation = props.isInConversation ?? isConversation(topic);
  // Nobody moderates a conversation.
  const isAdmin = mayAdminister(viewer.roles) && !isInConversation;
  const rights = useMemo(() => ({ role: viewerRole, isAdmin }), [viewerRole, isAdmin]);
  const isModerator = mayModerate(rights);
  const { items } = useValue(topicView.feed.state).window;
  // Moderators do not wait.
  const nextAt = isModerator ? 0 : nextMessageAt(items, viewer.id, topic.slowModeSeconds);
  const side = props.side?.(topicView);
  const messages = (
    <>
      <PinsBar pins={topicView.pins} mayModerate={isModerator} />
      <div className="flex min-h-0 grow flex-col" {...dropAreaProps(field)}>
        <QuoterProvider value={replacement ? null : quote}>
          <MessageTimeline
            topicView={topicView}
            topicId={topic.id}
            parentId={topic.parentMessageId}
            linkedAt={props.at}
            unreadCount={topic.unreadCount}
            communityId={topic.community.id}
            isInConversation={isInConversation}
            rights={rights}
            editedId={editedId}
            setEditedId={changeEditedId}
          />
        </QuoterProvider>
      </div>
      {replacement || (
        <>
          <TypingLine topicId={topic.id} />
          {note}
          <MessageComposer
            topicId={topic.id}
            parentId={topic.parentMessageId}
            topicTitle={topic.title}
            label={props.label}
            quoted={quoted}
            onQuote={quote}
            onQuoteEnd={endQuote}
            communityId={topic.community.id}
            isInConversation={isInConversation}
            archived={archivedAt ? "community" : topic.archivedAt ? "topic" : null}
            mutedUntil={viewerMutedUntil}
            nextAt={nextAt}
            field={field}
            onSent={handleSent}
            onEditLast={editLast}
          />
        </>
      )}
    </>
  );
  if (!props.side) return messages;
  return <TopicAndThread side={side}>{messages}</TopicAndThread>;
}

/** Shows the messages and, if there is something beside them, both. On narrow screens only the latter is visible. */
function TopicAndThread({ side, children }: { side: ReactNode; children: ReactNode }) {
  const isWide = useIsAtLeast(LARGE);
  return (
    <div className="flex min-h-0 grow">
      <div className="flex min-h-0 min-w-0 grow flex-col" inert={Boolean(side) && !isWide}>
        {children}
      </div>
      {side}
    </div>
  );
}
