/** What a thread shows: the message, its replies, and a field for a reply. */
import { type ReactNode, type RefObject, useCallback, useEffect, useRef, useState } from "react";
import { useQuery } from "urql";
import { useCurrent } from "../../api/current-text";
import { dateAndTime, dateOf } from "../../i18n/times";
import { useViewer } from "../../session/viewer";
import { Avatar } from "../../ui/avatar";
import { useTranslation } from "../../ui/preferences";
import { EmptyState, ErrorState, LoadingState } from "../../ui/states";
import { useValue } from "../../ui/value";
import { MessageComposer } from "../composer/composer";
import { useOutbox } from "../composer/outbox";
import { MessageBody } from "../messages/message-body";
import { PendingMessageRow } from "../messages/pending-row";
import { type Message, type QuotedMessage, TopicHeader } from "../operations";
import { isConversation, JoinedTopic } from "../topics/joined-topic";
import type { TopicSummary } from "../topics/topic-heading";
import { FollowButton } from "./follow-button";
import { ThreadOpenerProvider } from "./opener";
import { ThreadMuteButton } from "./thread-mute-button";

/** The buttons in the heading of a thread that exists. */
export function ThreadActions({ threadId, parent }: { threadId: string; parent: Message }) {
  return (
    <>
      <FollowButton parentId={parent.id} replyCount={parent.thread?.replyCount ?? 0} />
      <ThreadMuteButton threadId={threadId} parent={parent} />
    </>
  );
}

interface ThreadContentsProps {
  /** Id of the thread; null before the first reply. */
  threadId: string | null;
  topic: TopicSummary;
  parent: Message;
  reply: string | null;
}

export function ThreadContents(props: ThreadContentsProps) {
  return (
    <>
      <ThreadParent message={props.parent} />
      <ThreadOpenerProvider value={null}>
        <Replies {...props} />
      </ThreadOpenerProvider>
    </>
  );
}

function ThreadParent({ message: loaded }: { message: Message }) {
  const { t, language } = useTranslation();
  const message = useCurrent(loaded);
  const { author, timestamp, deletedAt } = message;
  return (
    <article
      aria-label={t("thread.parent", { name: author.name })}
      data-testid="thread-parent"
      className="thin-scroll flex max-h-[35%] items-start shrink-0 gap-3 overflow-y-auto border-b border-line px-4 py-3"
    >
      <Avatar user={author} />
      <div className="min-w-0 grow">
        <p className="flex flex-wrap items-baseline gap-x-2">
          <span className="font-semibold">{author.name}</span>
          <time dateTime={dateOf(timestamp).toISOString()} className="text-xs text-quiet">
            {dateAndTime(language, dateOf(timestamp))}
          </time>
        </p>
        {deletedAt ? (
          <p className="text-quiet italic">{t("message.deleted")}</p>
        ) : (
          <MessageBody message={message} />
        )}
      </div>
    </article>
  );
}

/** The replies, or the field for the first one. The field stays until the thread that a reply has started is open. */
function Replies({ threadId, topic, parent, reply }: ThreadContentsProps) {
  const [isReplaced, setIsReplaced] = useState(threadId !== null);
  const [caret, setCaret] = useState<number | null>(null);
  const [quoted, setQuoted] = useState<QuotedMessage | null>(null);
  const field = useRef<HTMLTextAreaElement>(null);
  const replace = useCallback(() => {
    const { current } = field;
    if (current && current === document.activeElement) setCaret(current.selectionStart);
    setIsReplaced(true);
  }, []);
  return (
    <>
      {!isReplaced && (
        <FirstReply
          topic={topic}
          parent={parent}
          hasThread={threadId !== null}
          field={field}
          quoted={quoted}
          setQuoted={setQuoted}
        />
      )}
      {threadId !== null && (
        <ThreadReplies
          id={threadId}
          topic={topic}
          reply={reply}
          placeholder={isReplaced ? <LoadingState rows={4} /> : null}
          caret={caret}
          initialQuote={quoted}
          onOpened={replace}
        />
      )}
    </>
  );
}

interface ThreadRepliesProps {
  id: string;
  topic: TopicSummary;
  reply: string | null;
  /** Shown until the replies are. */
  placeholder: ReactNode;
  caret: number | null;
  initialQuote: QuotedMessage | null;
  onOpened: () => void;
}

function ThreadReplies({ id, topic, reply, placeholder, ...more }: ThreadRepliesProps) {
  const { t } = useTranslation();
  const [{ data, error, stale }, load] = useQuery({
    query: TopicHeader,
    variables: { id },
    requestPolicy: "network-only",
  });
  const reload = useCallback(() => load({ requestPolicy: "network-only" }), [load]);
  const thread = data?.topic;
  if (error && !thread) return <ErrorState error={error} retry={reload} />;
  if (!thread) return placeholder;
  // The archive and the slow mode of the topic apply to its threads.
  const { archivedAt, slowModeSeconds } = topic;
  return (
    <JoinedTopic
      topic={{ ...thread, title: t("thread.title"), archivedAt, slowModeSeconds, community: topic.community }}
      isStale={stale}
      at={reply}
      isInConversation={isConversation(topic)}
      label={t("thread.reply")}
      placeholder={placeholder}
      {...more}
      onRemoved={reload}
      reloadHeader={reload}
    />
  );
}

interface FirstReplyProps {
  topic: TopicSummary;
  parent: Message;
  /** Whether somebody has started the thread, which is being opened. */
  hasThread: boolean;
  field: RefObject<HTMLTextAreaElement | null>;
  quoted: QuotedMessage | null;
  setQuoted: (message: QuotedMessage | null) => void;
}

/** The field for the first reply, which starts the thread. */
function FirstReply({ topic, parent, hasThread, field, quoted, setQuoted }: FirstReplyProps) {
  const { t } = useTranslation();
  const viewer = useViewer();
  const pending = useValue(useOutbox().pending).filter(({ replyTo }) => replyTo === parent.id);
  useEffect(() => {
    if (matchMedia("(pointer: fine)").matches) field.current?.focus();
  }, [field]);
  const { viewerMutedUntil, archivedAt } = topic.community;
  return (
    <>
      <div className="min-h-0 grow overflow-y-auto">
        {pending.length === 0 &&
          (hasThread ? (
            <LoadingState rows={4} />
          ) : (
            <EmptyState icon="chat" title={t("thread.empty")} hint={t("thread.emptyHint")} />
          ))}
        {pending.map((entry) => (
          <PendingMessageRow key={entry.key} entry={entry} viewer={viewer} />
        ))}
      </div>
      {!parent.deletedAt && (
        <MessageComposer
          topicId={topic.id}
          topicTitle={topic.title}
          replyTo={parent.id}
          quoted={quoted}
          onQuote={setQuoted}
          onQuoteEnd={() => setQuoted(null)}
          label={t("thread.reply")}
          communityId={topic.community.id}
          isInConversation={isConversation(topic)}
          archived={archivedAt ? "community" : topic.archivedAt ? "topic" : null}
          mutedUntil={viewerMutedUntil}
          nextAt={0}
          field={field}
          onSent={() => {}}
          onEditLast={() => {}}
        />
      )}
    </>
  );
}
