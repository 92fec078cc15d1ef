/** One community: its members, and for moderators its bans, requests to join and settings. */
import { useQuery } from "urql";
import { type CommunityPlace, hrefOf } from "../app/router";
import { mayAdminister } from "../session/permissions";
import { useViewer } from "../session/viewer";
import { Icon } from "../ui/icons";
import { useTranslation } from "../ui/preferences";
import { ErrorState, LoadingState } from "../ui/states";
import { Tab } from "../ui/tabs";
import { BanList } from "./ban-list";
import { CommunitySettings } from "./community-settings";
import { MemberList } from "./member-list";
import { type Community, CommunityDetails } from "./operations";
import { mayModerate, type Powers } from "./powers";
import { RequestList } from "./request-list";

type TabName = CommunityPlace["tab"];

export function CommunityScreen({ place }: { place: CommunityPlace }) {
  const { roles } = useViewer();
  const [{ data, error }, load] = useQuery({
    query: CommunityDetails,
    variables: { id: place.id },
    requestPolicy: "cache-and-network",
  });
  const reload = () => load({ requestPolicy: "network-only" });
  const community = data?.community;
  if (!community) return error ? <ErrorState error={error} retry={reload} /> : <LoadingState />;
  const powers = { role: community.viewerRole, isAdmin: mayAdminister(roles) };
  return (
    <div className="thin-scroll h-full overflow-y-auto">
      <div className="mx-auto max-w-3xl px-3 pb-16 sm:px-6">
        <Header community={community} />
        <Tabs place={place} tabs={tabsOf(community, powers)} />
        <Contents place={place} community={community} powers={powers} reload={reload} />
      </div>
    </div>
  );
}

function tabsOf(community: Community, powers: Powers): TabName[] {
  const tabs: TabName[] = ["members"];
  if (mayModerate(powers)) tabs.push("bans");
  if (mayModerate(powers) && community.visibility === "LISTED") tabs.push("requests");
  if (community.joined) tabs.push("settings");
  return tabs;
}

function Header({ community }: { community: Community }) {
  const { t } = useTranslation();
  return (
    <header className="flex items-start gap-2 pt-4">
      <a
        href={hrefOf({ name: "chat" })}
        aria-label={t("back")}
        className="rounded-full p-2 text-quiet hover:bg-hover md:hidden"
      >
        <Icon name="back" />
      </a>
      <div className="min-w-0">
        <h1 className="text-xl font-semibold">{community.name}</h1>
        {community.description && <p>{community.description}</p>}
        <p className="text-sm text-quiet">
          {t(`visibility.${community.visibility}`)} · {t("members", { count: community.memberCount })}
        </p>
      </div>
    </header>
  );
}

function Tabs({ place, tabs }: { place: CommunityPlace; tabs: readonly TabName[] }) {
  const { t } = useTranslation();
  return (
    <nav
      aria-label={t("community.sections")}
      className="flex flex-wrap items-center gap-1 py-4 max-sm:gap-0 max-sm:text-sm"
    >
      {tabs.map((tab) => (
        <Tab
          key={tab}
          href={hrefOf({ name: "community", id: place.id, tab, person: null })}
          isCurrent={place.tab === tab}
        >
          {t(`community.tab.${tab}`)}
        </Tab>
      ))}
    </nav>
  );
}

interface ContentsProps {
  place: CommunityPlace;
  community: Community;
  powers: Powers;
  reload: () => void;
}

function Contents({ place, community, powers, reload }: ContentsProps) {
  switch (place.tab) {
    case "bans":
      return <BanList community={community} />;
    case "requests":
      return <RequestList community={community} onChanged={reload} />;
    case "settings":
      return <CommunitySettings community={community} powers={powers} />;
    default:
      return <MemberList community={community} powers={powers} personId={place.person} onChanged={reload} />;
  }
}
