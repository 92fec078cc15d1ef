/** The archived communities of the viewer, which the sidebar leaves out. */
import { useCallback, useState } from "react";
import { request, useApi } from "../../api/api";
import type { ResultOf } from "../../api/graphql";
import { hrefOf } from "../../app/router";
import { PAGE_SIZE } from "../../timeline/paged-list";
import { usePagedList } from "../../timeline/use-paged-list";
import { PagedRows } from "../../ui/paged-rows";
import { useTranslation } from "../../ui/preferences";
import { ArchivedCommunities } from "../operations";

type ArchivedCommunity = ResultOf<typeof ArchivedCommunities>["communities"][number];

const keyOf = ({ id }: ArchivedCommunity) => id;

export function ArchivedCommunitiesSection() {
  const { t } = useTranslation();
  const [isOpen, setIsOpen] = useState(false);
  return (
    <details
      className="mt-6 border-t border-line pt-4"
      onToggle={(event) => setIsOpen(event.currentTarget.open)}
    >
      <summary className="rounded font-semibold">{t("archive.list")}</summary>
      {isOpen && <ArchivedCommunityList />}
    </details>
  );
}

function ArchivedCommunityList() {
  const { t } = useTranslation();
  const { direct } = useApi();
  const loadPage = useCallback(
    async (after: ArchivedCommunity | null) =>
      (await request(direct, ArchivedCommunities, { after: after?.id ?? null, limit: PAGE_SIZE }))
        .communities,
    [direct],
  );
  const communities = usePagedList(loadPage, keyOf);
  const hasNone = !communities.hasMore && communities.items?.every(({ archivedAt }) => !archivedAt);
  if (hasNone) return <p className="py-3 text-quiet">{t("archive.none")}</p>;
  return (
    <PagedRows list={communities} label={t("archive.list")} empty={null}>
      {({ id, name, archivedAt }) =>
        archivedAt && (
          <li key={id} className="border-b border-line py-3">
            <a
              href={hrefOf({ name: "community", id, tab: "members", person: null })}
              className="font-semibold hover:underline"
            >
              {name}
            </a>
          </li>
        )
      }
    </PagedRows>
  );
}
