/** The bans of a community that are in force. */
import { useCallback } from "react";
import { request, useApi } from "../api/api";
import { dateAndTime, dayLabel } from "../i18n/times";
import { PAGE_SIZE } from "../timeline/paged-list";
import { usePagedList } from "../timeline/use-paged-list";
import { Avatar } from "../ui/avatar";
import { Button } from "../ui/button";
import { PagedRows } from "../ui/paged-rows";
import { useTranslation } from "../ui/preferences";
import { EmptyState } from "../ui/states";
import { notify, notifyFailure } from "../ui/toasts";
import { type Community, type CommunityBan, CommunityBans, UnbanMember } from "./operations";

const keyOf = (ban: CommunityBan) => ban.user.id;

export function BanList({ community }: { community: Community }) {
  const { t } = useTranslation();
  const { direct } = useApi();
  const loadPage = useCallback(
    async (after: CommunityBan | null) => {
      const variables = { id: community.id, after: after?.user.id ?? null, limit: PAGE_SIZE };
      return (await request(direct, CommunityBans, variables)).communityBans;
    },
    [direct, community.id],
  );
  const bans = usePagedList(loadPage, keyOf);

  async function lift({ user }: CommunityBan) {
    try {
      await request(direct, UnbanMember, { id: community.id, userId: user.id });
      bans.change((each) => (each.user.id === user.id ? null : each));
      notify(t("bans.lifted", { name: user.name }));
    } catch (error) {
      notifyFailure(error);
    }
  }

  return (
    <PagedRows
      list={bans}
      label={t("bans.title")}
      empty={<EmptyState icon="ban" title={t("bans.none")} hint={t("bans.noneHint")} />}
    >
      {(ban) => <BanRow key={ban.user.id} ban={ban} onLift={() => lift(ban)} />}
    </PagedRows>
  );
}

function BanRow({ ban, onLift }: { ban: CommunityBan; onLift: () => void }) {
  const { t, language } = useTranslation();
  const { user, bannedBy, reason, until } = ban;
  const bannedAt = dayLabel(language, new Date(ban.bannedAt), new Date());
  return (
    <li data-ban={user.id} className="flex gap-3 border-b border-line py-3">
      <Avatar user={user} />
      <div className="min-w-0 grow">
        <p className="flex flex-wrap items-baseline gap-x-2">
          <span className="font-semibold">{user.name}</span>
          <span className="truncate text-sm text-quiet">@{user.handle}</span>
        </p>
        <p>{reason}</p>
        <p className="text-sm text-quiet">
          {t("bans.by", { name: bannedBy.name, day: bannedAt })} ·{" "}
          {until ? t("bans.until", { until: dateAndTime(language, new Date(until)) }) : t("end.never")}
        </p>
      </div>
      <Button
        className="shrink-0 self-center"
        onClick={onLift}
        aria-label={t("bans.liftNamed", { name: user.name })}
      >
        {t("bans.lift")}
      </Button>
    </li>
  );
}
