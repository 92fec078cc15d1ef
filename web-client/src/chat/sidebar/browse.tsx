/** The communities that the viewer has not joined, loaded page by page. */

import { useState } from "react";
import { useMutation, useQuery } from "urql";
import { errorCode, restrictedUntil } from "../../api/failure";
import type { ResultOf } from "../../api/graphql";
import { hrefOf, navigate } from "../../app/router";
import { dateAndTime } from "../../i18n/times";
import { CommunityAvatar } from "../../ui/avatar";
import { Button } from "../../ui/button";
import { Icon } from "../../ui/icons";
import { PageTitle } from "../../ui/page-title";
import { useTranslation } from "../../ui/preferences";
import { EmptyState, ErrorState, LoadingState } from "../../ui/states";
import { notify, notifyFailure } from "../../ui/toasts";
import { COMMUNITIES_PAGE_SIZE, JoinCommunity, OtherCommunities } from "../operations";
import { ArchivedCommunitiesSection } from "./archived-communities";
import { JoinRequestDialog } from "./request-dialog";

type ListedCommunity = ResultOf<typeof OtherCommunities>["communities"][number];

export function BrowseCommunitiesPage() {
  const { t } = useTranslation();
  // The cursor of a page is the last id of the previous page; null for the first page.
  const [pageCursors, setPageCursors] = useState<readonly (string | null)[]>([null]);
  return (
    <section aria-labelledby="browse" className="thin-scroll h-full overflow-y-auto">
      <div className="mx-auto max-w-2xl p-4 sm:p-6">
        <div className="mb-4 flex items-center gap-2">
          <a
            href={hrefOf({ name: "chat" })}
            aria-label={t("back")}
            className="rounded-full p-2 text-quiet md:hidden"
          >
            <Icon name="back" />
          </a>
          <PageTitle name={t("browse")} />
          <h1 id="browse" className="text-xl font-semibold">
            {t("browse")}
          </h1>
        </div>
        {pageCursors.map((after, index) => (
          <ListedCommunities
            key={after}
            after={after}
            loadMore={
              index === pageCursors.length - 1 ? (last) => setPageCursors([...pageCursors, last]) : undefined
            }
          />
        ))}
        <ArchivedCommunitiesSection />
      </div>
    </section>
  );
}

/** One page of communities. Only the last page gets `loadMore`, and shows the button for the next page. */
function ListedCommunities({
  after,
  loadMore,
}: {
  after: string | null;
  loadMore: ((last: string) => void) | undefined;
}) {
  const { t } = useTranslation();
  const [{ data, error }, reload] = useQuery({
    query: OtherCommunities,
    variables: { after, limit: COMMUNITIES_PAGE_SIZE },
    requestPolicy: "cache-and-network",
  });
  if (!data) return error ? <ErrorState error={error} retry={reload} /> : <LoadingState />;
  const { communities } = data;
  const last = communities.at(-1);
  if (!last && after === null)
    return <EmptyState icon="check" title={t("browse.none")} hint={t("browse.noneHint")} />;
  return (
    <>
      <ul className="flex flex-col gap-2 pb-2">
        {communities.map((community) => (
          <CommunityRow key={community.id} community={community} />
        ))}
      </ul>
      {loadMore && last && communities.length === COMMUNITIES_PAGE_SIZE && (
        <p className="py-3 text-center">
          <Button onClick={() => loadMore(last.id)}>{t("browse.more")}</Button>
        </p>
      )}
    </>
  );
}

function CommunityRow({ community }: { community: ListedCommunity }) {
  const { t, language } = useTranslation();
  const [, join] = useMutation(JoinCommunity);
  const [isAsking, setIsAsking] = useState(false);
  const { name } = community;
  const isListed = community.visibility === "LISTED";
  async function joinAndOpen() {
    const { error } = await join({ id: community.id });
    if (!error) return navigate({ name: "chat" });
    if (errorCode(error) !== "FORBIDDEN") return notifyFailure(error);
    const until = restrictedUntil(error);
    notify(
      until
        ? t("browse.bannedUntil", { name, until: dateAndTime(language, new Date(until)) })
        : t("browse.banned", { name }),
    );
  }
  return (
    <li className="flex items-center gap-4 rounded-card border border-line bg-raised p-4">
      <CommunityAvatar community={community} size="middle" />
      <div className="min-w-0 grow">
        <h2 className="font-semibold">{name}</h2>
        <p className="text-sm text-quiet">{community.description}</p>
        <p className="text-sm text-quiet">
          {isListed && `${t("visibility.LISTED")} · `}
          {t("members", { count: community.memberCount })}
        </p>
      </div>
      <Button
        kind={isListed ? "other" : "main"}
        className="shrink-0"
        onClick={isListed ? () => setIsAsking(true) : joinAndOpen}
        aria-label={t(isListed ? "browse.askNamed" : "joinNamed", { name })}
      >
        {t(isListed ? "browse.ask" : "join")}
      </Button>
      {isAsking && <JoinRequestDialog community={community} onClose={() => setIsAsking(false)} />}
    </li>
  );
}
