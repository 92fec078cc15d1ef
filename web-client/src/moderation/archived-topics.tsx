/** The archived topics of a community, which its list of topics leaves out. */
import { useCallback, useState } from "react";
import { request, useApi } from "../api/api";
import type { ResultOf } from "../api/graphql";
import { hrefOf } from "../app/router";
import { ArchivedTopics } from "../chat/operations";
import { PAGE_SIZE } from "../timeline/paged-list";
import { usePagedList } from "../timeline/use-paged-list";
import { PagedRows } from "../ui/paged-rows";
import { useTranslation } from "../ui/preferences";

type ArchivedTopic = ResultOf<typeof ArchivedTopics>["communityTopics"]["items"][number];

const keyOf = ({ id }: ArchivedTopic) => id;

export function ArchivedTopicsSection({ communityId }: { communityId: string }) {
  const { t } = useTranslation();
  const [isOpen, setIsOpen] = useState(false);
  return (
    <details className="border-t border-line pt-6" onToggle={(event) => setIsOpen(event.currentTarget.open)}>
      <summary className="rounded font-semibold">{t("topic.archivedList")}</summary>
      {isOpen && <ArchivedTopicList communityId={communityId} />}
    </details>
  );
}

function ArchivedTopicList({ communityId }: { communityId: string }) {
  const { t } = useTranslation();
  const { direct } = useApi();
  const loadPage = useCallback(
    async (after: ArchivedTopic | null) => {
      const variables = { communityId, latest: after?.lastActivity ?? "now", limit: PAGE_SIZE };
      return (await request(direct, ArchivedTopics, variables)).communityTopics.items;
    },
    [direct, communityId],
  );
  const topics = usePagedList(loadPage, keyOf);
  return (
    <PagedRows
      list={topics}
      label={t("topic.archivedList")}
      empty={<p className="py-3 text-quiet">{t("topic.archivedNone")}</p>}
    >
      {({ id, title }) => (
        <li key={id} className="border-b border-line py-3">
          <a
            href={hrefOf({ name: "topic", id, at: null })}
            className="block truncate font-semibold hover:underline"
          >
            {title}
          </a>
        </li>
      )}
    </PagedRows>
  );
}
