/** The people whose names or handles match a search. */
import { useCallback } from "react";
import { request, useApi } from "../api/api";
import { hrefOf } from "../app/router";
import { usePagedList } from "../timeline/use-paged-list";
import { Avatar } from "../ui/avatar";
import { Badge } from "../ui/badge";
import { PagedRows } from "../ui/paged-rows";
import { useTranslation } from "../ui/preferences";
import { EmptyState } from "../ui/states";
import { plainText } from "../ui/text/formatting";
import { type PersonMatch, SearchPeople } from "./operations";
import { SearchErrorText, SearchExcerpt } from "./results";

const keyOf = ({ user }: PersonMatch) => user.id;

export function PeopleResults({ query }: { query: string }) {
  const { t } = useTranslation();
  if (!query)
    return <EmptyState icon="search" title={t("search.startPeople")} hint={t("search.startPeopleHint")} />;
  return <PeopleList query={query} />;
}

function PeopleList({ query }: { query: string }) {
  const { t } = useTranslation();
  const { direct } = useApi();
  const loadPage = useCallback(
    async (last: PersonMatch | null) =>
      (await request(direct, SearchPeople, { query, afterUserId: last?.user.id ?? null })).people,
    [direct, query],
  );
  const list = usePagedList(loadPage, keyOf);
  if (list.error) return <SearchErrorText error={list.error} vagueText={t("search.noName")} />;
  return (
    <PagedRows
      list={list}
      label={t("search.results")}
      empty={<EmptyState icon="search" title={t("search.none")} hint={t("search.noPeopleHint")} />}
    >
      {(match) => <PersonMatchRow key={match.user.id} match={match} />}
    </PagedRows>
  );
}

function PersonMatchRow({ match: { user, nameExcerpt, handleExcerpt } }: { match: PersonMatch }) {
  const { t } = useTranslation();
  return (
    <li className="border-b border-line">
      <a
        href={hrefOf({ name: "person", id: user.id })}
        data-match={user.id}
        className="flex items-center gap-3 rounded-lg px-2 py-3 hover:bg-hover"
      >
        <Avatar user={user} />
        <span className="min-w-0 grow">
          <span className="flex flex-wrap items-baseline gap-x-2">
            <span className="min-w-0 break-words font-semibold">
              <SearchExcerpt parts={nameExcerpt} />
            </span>
            <span className="flex min-w-0 break-all text-sm text-quiet">
              @<SearchExcerpt parts={handleExcerpt} />
            </span>
          </span>
          {user.bio && <span className="line-clamp-1 text-sm text-quiet">{plainText(user.bio)}</span>}
        </span>
        {user.deactivated && <Badge tone="quiet">{t("search.deactivated")}</Badge>}
        {user.blocked && <Badge tone="quiet">{t("search.blocked")}</Badge>}
      </a>
    </li>
  );
}
