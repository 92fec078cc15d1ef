/** One community: its members, for moderators its reports, bans and requests to join, and for members its settings. */

import { useQuery } from "urql";
import { type CommunityRoute, hrefOf } from "../app/router";
import { Banner } from "../files/banner";
import { MuteButton } from "../mutes/mute-button";
import { PresenceProvider } from "../presence/presence";
import { ReportList } from "../reports/report-list";
import { mayAdminister } from "../session/permissions";
import { useViewer } from "../session/viewer";
import { CommunityAvatar } from "../ui/avatar";
import { Badge } from "../ui/badge";
import { Icon } from "../ui/icons";
import { PageTitle } from "../ui/page-title";
import { useTranslation } from "../ui/preferences";
import { ErrorState, LoadingState } from "../ui/states";
import { Tab } from "../ui/tabs";
import { BanList } from "./ban-list";
import { CommunitySettings } from "./community-settings";
import { MemberList } from "./member-list";
import { type Community, CommunityDetails } from "./operations";
import { JoinRequestList } from "./request-list";
import { type CommunityRights, mayModerate } from "./rights";

type CommunityTabName = CommunityRoute["tab"];

export function CommunityScreen({ route }: { route: CommunityRoute }) {
  const { roles } = useViewer();
  const [{ data, error }, load] = useQuery({
    query: CommunityDetails,
    variables: { id: route.id },
    requestPolicy: "cache-and-network",
  });
  const reload = () => load({ requestPolicy: "network-only" });
  const community = data?.community;
  if (!community) return error ? <ErrorState error={error} retry={reload} /> : <LoadingState />;
  const rights = { role: community.viewerRole, isAdmin: mayAdminister(roles) };
  return (
    <div className="thin-scroll h-full overflow-y-auto">
      <div className="mx-auto max-w-3xl px-3 pb-16 sm:px-6">
        <CommunityHeader community={community} />
        <CommunityTabs route={route} tabs={tabsOf(community, rights)} />
        <CommunityTabContents route={route} community={community} rights={rights} reload={reload} />
      </div>
    </div>
  );
}

function tabsOf(community: Community, rights: CommunityRights): CommunityTabName[] {
  const tabs: CommunityTabName[] = ["members"];
  if (mayModerate(rights)) tabs.push("reports", "bans");
  if (mayModerate(rights) && community.visibility === "LISTED") tabs.push("requests");
  if (community.joined) tabs.push("settings");
  return tabs;
}

function CommunityHeader({ community }: { community: Community }) {
  const { t } = useTranslation();
  return (
    <header className="flex flex-wrap items-start gap-2 pt-4">
      {community.bannerUrl && <Banner path={community.bannerUrl} />}
      <a
        href={hrefOf({ name: "chat" })}
        aria-label={t("back")}
        className="rounded-full p-2 text-quiet hover:bg-hover md:hidden"
      >
        <Icon name="back" />
      </a>
      <CommunityAvatar community={community} size="large" />
      <div className="min-w-32 flex-1">
        <PageTitle name={community.name} />
        <h1 className="flex flex-wrap items-center gap-2 text-xl font-semibold">
          {community.name}
          {community.archivedAt && <Badge tone="wait">{t("archive.badge")}</Badge>}
        </h1>
        {community.description && <p>{community.description}</p>}
        <p className="text-sm text-quiet">
          {t(`visibility.${community.visibility}`)} · {t("members", { count: community.memberCount })}
        </p>
      </div>
      {community.joined && (
        <MuteButton subject="COMMUNITY" id={community.id} name={community.name} isMuted={community.muted} />
      )}
    </header>
  );
}

function CommunityTabs({ route, tabs }: { route: CommunityRoute; tabs: readonly CommunityTabName[] }) {
  const { t } = useTranslation();
  return (
    <nav
      aria-label={t("community.sections")}
      className="flex flex-wrap items-center gap-1 py-4 max-sm:gap-0 max-sm:text-sm"
    >
      {tabs.map((tab) => (
        <Tab
          key={tab}
          href={hrefOf({ name: "community", id: route.id, tab, person: null })}
          isCurrent={route.tab === tab}
        >
          {t(`community.tab.${tab}`)}
        </Tab>
      ))}
    </nav>
  );
}

interface CommunityTabContentsProps {
  route: CommunityRoute;
  community: Community;
  rights: CommunityRights;
  reload: () => void;
}

function CommunityTabContents({ route, community, rights, reload }: CommunityTabContentsProps) {
  switch (route.tab) {
    case "bans":
      return <BanList community={community} />;
    case "requests":
      return <JoinRequestList community={community} onChanged={reload} />;
    case "reports":
      return <ReportList communityId={community.id} />;
    case "settings":
      return <CommunitySettings community={community} rights={rights} />;
    default:
      return (
        <PresenceProvider communityId={community.id}>
          <MemberList community={community} rights={rights} personId={route.person} onChanged={reload} />
        </PresenceProvider>
      );
  }
}
