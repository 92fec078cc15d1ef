/** The threads that the viewer follows: unread ones first, then the others, each most recently active first. */

import { useState } from "react";
import { useCurrent, useWatchedMessages, WATCHED_MAX_IN_CHAT } from "../../api/current-text";
import { hrefOf } from "../../app/router";
import { dateAndTime, dateOf, timeOrDate } from "../../i18n/times";
import { Button } from "../../ui/button";
import { Icon } from "../../ui/icons";
import { PageTitle } from "../../ui/page-title";
import { useTranslation } from "../../ui/preferences";
import { EmptyState, ErrorState, LoadingState } from "../../ui/states";
import { contentOf } from "../messages/message-content";
import { UnreadCount } from "../topics/topic-link";
import {
  FOLLOWED_PAGE_SIZE,
  type FollowedThread,
  hrefOfThread,
  useFollowedThreads,
} from "./followed-threads";
import { parentText, placeText } from "./thread-names";

const THREADS_MAX = 500;

export function ThreadsPage() {
  const { t } = useTranslation();
  const [limit, setLimit] = useState(FOLLOWED_PAGE_SIZE);
  const { threads, hasMore, error, reload } = useFollowedThreads(limit);
  useWatchedMessages(threads?.flatMap(messagesOf) ?? [], WATCHED_MAX_IN_CHAT);
  const unread = threads?.filter(({ thread }) => thread.unreadCount > 0) ?? [];
  const read = threads?.filter(({ thread }) => thread.unreadCount === 0) ?? [];
  return (
    <section aria-labelledby="threads" className="thin-scroll h-full overflow-y-auto">
      <div className="mx-auto max-w-2xl p-4 sm:p-6">
        <div className="mb-4 flex items-center gap-2">
          <a
            href={hrefOf({ name: "chat" })}
            aria-label={t("back")}
            className="rounded-full p-2 text-quiet md:hidden"
          >
            <Icon name="back" />
          </a>
          <PageTitle name={t("threads")} />
          <h1 id="threads" className="text-xl font-semibold">
            {t("threads")}
          </h1>
        </div>
        {!threads && (error ? <ErrorState error={error} retry={reload} /> : <LoadingState />)}
        {threads?.length === 0 && (
          <EmptyState icon="chat" title={t("threads.none")} hint={t("threads.noneHint")} />
        )}
        <ThreadGroup title={t("threads.unread")} threads={unread} />
        <ThreadGroup title={t("threads.read")} threads={read} />
        {hasMore && limit < THREADS_MAX && (
          <p className="py-3 text-center">
            <Button onClick={() => setLimit(limit + FOLLOWED_PAGE_SIZE)}>{t("threads.more")}</Button>
          </p>
        )}
      </div>
    </section>
  );
}

function messagesOf({ thread, parentMessage, parentTopic }: FollowedThread) {
  const last = thread.lastMessage ? [{ id: thread.lastMessage.id, topicId: thread.id }] : [];
  return parentMessage ? [...last, { id: parentMessage.id, topicId: parentTopic.id }] : last;
}

function ThreadGroup({ title, threads }: { title: string; threads: readonly FollowedThread[] }) {
  if (threads.length === 0) return null;
  return (
    <section aria-label={title} className="mb-6">
      <h2 className="mb-2 text-sm font-semibold text-quiet">{title}</h2>
      <ul className="flex flex-col gap-2">
        {threads.map((each) => (
          <ThreadRow key={each.thread.id} followed={each} />
        ))}
      </ul>
    </section>
  );
}

function ThreadRow({ followed }: { followed: FollowedThread }) {
  const { t, language } = useTranslation();
  const { thread, parentTopic } = followed;
  const { unreadCount } = thread;
  const lastMessage = useCurrent(thread.lastMessage);
  const parentMessage = useCurrent(followed.parentMessage);
  const at = dateOf(thread.lastActivity);
  return (
    <li>
      <a
        href={hrefOfThread(followed)}
        data-followed={thread.id}
        className="flex gap-3 rounded-card border border-line bg-raised p-3 hover:bg-hover"
      >
        <span className="min-w-0 grow">
          <span className="block truncate text-sm text-quiet">{placeText(parentTopic, t)}</span>
          <span className="block truncate font-semibold">{parentText(parentMessage, t)}</span>
          {lastMessage && (
            <span className="block truncate text-sm">
              {lastMessage.author.name}: {contentOf(lastMessage, t)}
            </span>
          )}
        </span>
        <span className="flex shrink-0 flex-col items-end gap-1">
          <time
            dateTime={at.toISOString()}
            title={dateAndTime(language, at)}
            className="text-xs text-quiet tabular-nums"
          >
            {timeOrDate(language, at, new Date())}
          </time>
          <UnreadCount count={unreadCount} />
        </span>
      </a>
    </li>
  );
}
