/** The results of a search, with the matching words highlighted. */
import { useCurrent, useWatchedMessages, useWatchedPosts } from "../api/current-text";
import { rejectionText, wrongTerm } from "../api/failure";
import { hrefOf } from "../app/router";
import { dateAndTime, dateOf, timeOrDate } from "../i18n/times";
import { StampImage } from "../stamps/stamp-image";
import { Avatar } from "../ui/avatar";
import { Button } from "../ui/button";
import { Icon } from "../ui/icons";
import { type Translate, useTranslation } from "../ui/preferences";
import { EmptyState, ErrorState, LoadingState } from "../ui/states";
import { plainText } from "../ui/text/formatting";
import type { SearchKind, SearchMatch } from "./matches";
import { useSearch } from "./use-search";

export function SearchResults({ kind, query }: { kind: Exclude<SearchKind, "people">; query: string }) {
  const { t } = useTranslation();
  const { matches, error, isLoadingMore, loadMore } = useSearch(kind, query);
  useWatchedPosts(kind === "posts");
  const messages = kind === "messages" ? (matches?.items ?? []) : [];
  useWatchedMessages(messages.flatMap(({ id, topic }) => (topic ? [{ id, topicId: topic.id }] : [])));
  if (!query) return <EmptyState icon="search" title={t("search.start")} hint={t("search.startHint")} />;
  if (error) return <SearchErrorText error={error} vagueText={t("search.tooVague")} />;
  if (!matches) return <LoadingState />;
  const { items, next, isIncomplete } = matches;
  if (items.length === 0 && next === null)
    return <EmptyState icon="search" title={t("search.none")} hint={t("search.noneHint")} />;
  return (
    <>
      <ul aria-label={t("search.results")} data-query={query}>
        {items.map((match) =>
          match.author ? (
            <MatchRow key={match.id} match={match} author={match.author} />
          ) : (
            <TopicMatchRow key={match.id} match={match} />
          ),
        )}
      </ul>
      {isIncomplete && <p className="py-2 text-center text-sm text-quiet">{t("search.incomplete")}</p>}
      {next !== null && (
        <p className="py-4 text-center">
          <Button isBusy={isLoadingMore} onClick={loadMore}>
            {t("list.more")}
          </Button>
        </p>
      )}
    </>
  );
}

/** The error of a search. `vagueText` says what a search without a wrong part needs. */
export function SearchErrorText({ error, vagueText }: { error: unknown; vagueText: string }) {
  const { t } = useTranslation();
  const term = wrongTerm(error);
  if (rejectionText(error) === null) return <ErrorState error={error} />;
  return (
    <p role="alert" className="px-6 py-12 text-center">
      {term === null ? vagueText : t("search.wrongTerm", { term })}
    </p>
  );
}

/** Returns the place of a message: its topic, a thread, or a direct message. */
function placeText(
  { title, parentMessageId, community }: NonNullable<SearchMatch["topic"]>,
  t: Translate,
): string {
  const name = parentMessageId === null ? title : t("thread.title");
  if (!name) return t("search.conversation");
  return community.name ? `${community.name} · ${name}` : name;
}

/** A result, with its new text if it was edited since. The server's excerpt is of the old text. */
type ChangeableMatch = SearchMatch & { text?: string };

function MatchRow({ match, author }: { match: SearchMatch; author: NonNullable<SearchMatch["author"]> }) {
  const { t, language } = useTranslation();
  const { topic, timestamp, excerpt, stamp, text, deletedAt } = useCurrent<ChangeableMatch>(match);
  const at = dateOf(timestamp);
  const route = topic
    ? ({ name: "topic", id: topic.id, at: timestamp } as const)
    : ({ name: "person", id: author.id } as const);
  return (
    <li className="border-b border-line">
      <a
        href={hrefOf(route)}
        data-match={match.id}
        className="flex gap-3 rounded-lg px-2 py-3 hover:bg-hover"
      >
        <Avatar user={author} />
        <span className="min-w-0 grow">
          <span className="flex items-baseline gap-x-2">
            <span className="truncate font-semibold">{author.name}</span>
            {topic && <span className="truncate text-sm text-quiet">{placeText(topic, t)}</span>}
            <time
              dateTime={at.toISOString()}
              title={dateAndTime(language, at)}
              className="ml-auto shrink-0 text-sm text-quiet"
            >
              {timeOrDate(language, at, new Date())}
            </time>
          </span>
          {deletedAt ? (
            <span className="text-quiet italic">{t(topic ? "message.deleted" : "post.gone")}</span>
          ) : (
            <SearchExcerpt
              parts={text === undefined ? excerpt : [{ text: plainText(text), isMatch: false }]}
            />
          )}
          {stamp && <StampImage path={stamp.imageUrl} name={stamp.name} className="mt-1 size-12" />}
        </span>
      </a>
    </li>
  );
}

function TopicMatchRow({ match: { id, topic, excerpt } }: { match: SearchMatch }) {
  return (
    <li className="border-b border-line">
      <a
        href={hrefOf({ name: "topic", id, at: null })}
        data-match={id}
        className="flex gap-3 rounded-lg px-2 py-3 hover:bg-hover"
      >
        <Icon name="chat" className="m-2 size-5 shrink-0 text-quiet" />
        <span className="min-w-0 grow">
          <SearchExcerpt parts={excerpt} />
          <span className="block truncate text-sm text-quiet">{topic?.community.name}</span>
        </span>
      </a>
    </li>
  );
}

export function SearchExcerpt({ parts }: { parts: SearchMatch["excerpt"] }) {
  return (
    <span className="block whitespace-pre-wrap break-words">
      {parts.map(({ text, isMatch }, index) => {
        const key = `${index}:${text}`;
        return isMatch ? (
          <mark key={key} className="rounded bg-glow px-0.5 font-semibold text-accent">
            {text}
          </mark>
        ) : (
          <span key={key}>{text}</span>
        );
      })}
    </span>
  );
}
