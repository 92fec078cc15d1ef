/** The requests to join a community. */
import { useCallback } from "react";
import { request, useApi } from "../api/api";
import { relativeTime } from "../i18n/times";
import { PAGE_SIZE } from "../timeline/paged-list";
import { usePagedList } from "../timeline/use-paged-list";
import { Avatar } from "../ui/avatar";
import { Button } from "../ui/button";
import { PagedRows } from "../ui/paged-rows";
import { useTranslation } from "../ui/preferences";
import { EmptyState } from "../ui/states";
import { notify, notifyError } from "../ui/toasts";
import { type Community, DecideJoinRequest, type JoinRequest, JoinRequests } from "./operations";

const keyOf = ({ user }: JoinRequest) => user.id;

export function JoinRequestList({ community, onChanged }: { community: Community; onChanged: () => void }) {
  const { t } = useTranslation();
  const { direct, cached } = useApi();
  const loadPage = useCallback(
    async (after: JoinRequest | null) => {
      const variables = { id: community.id, after: after?.user.id ?? null, limit: PAGE_SIZE };
      return (await request(direct, JoinRequests, variables)).joinRequests;
    },
    [direct, community.id],
  );
  const requests = usePagedList(loadPage, keyOf);

  async function decide({ user }: JoinRequest, approve: boolean) {
    try {
      await request(cached, DecideJoinRequest, { id: community.id, userId: user.id, approve });
      requests.change((each) => (each.user.id === user.id ? null : each));
      notify(t(approve ? "requests.approved" : "requests.refused", { name: user.name }));
      onChanged();
    } catch (error) {
      notifyError(error);
    }
  }

  return (
    <PagedRows
      list={requests}
      label={t("requests.title")}
      empty={<EmptyState icon="door" title={t("requests.none")} hint={t("requests.noneHint")} />}
    >
      {(each) => (
        <JoinRequestRow key={each.user.id} joinRequest={each} decide={(approve) => decide(each, approve)} />
      )}
    </PagedRows>
  );
}

interface RequestRowProps {
  joinRequest: JoinRequest;
  decide: (approve: boolean) => void;
}

function JoinRequestRow({ joinRequest: { user, message, requestedAt }, decide }: RequestRowProps) {
  const { t, language } = useTranslation();
  return (
    <li
      data-request={user.id}
      className="flex flex-wrap items-center gap-x-3 gap-y-2 border-b border-line py-3 sm:flex-nowrap"
    >
      <div className="flex min-w-0 grow gap-3">
        <Avatar user={user} />
        <div className="min-w-0">
          <p className="flex flex-wrap items-baseline gap-x-2">
            <span className="font-semibold">{user.name}</span>
            <span className="truncate text-sm text-quiet">@{user.handle}</span>
            <time dateTime={requestedAt} className="text-xs text-quiet">
              {relativeTime(language, new Date(requestedAt), new Date())}
            </time>
          </p>
          {message && <p className="whitespace-pre-wrap">{message}</p>}
        </div>
      </div>
      <div className="flex shrink-0 gap-2 max-sm:pl-12">
        <Button
          kind="main"
          onClick={() => decide(true)}
          aria-label={t("requests.approveNamed", { name: user.name })}
        >
          {t("requests.approve")}
        </Button>
        <Button onClick={() => decide(false)} aria-label={t("requests.refuseNamed", { name: user.name })}>
          {t("requests.refuse")}
        </Button>
      </div>
    </li>
  );
}
