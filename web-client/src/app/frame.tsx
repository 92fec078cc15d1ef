/** The layout around every screen: navigation, connection state, command palette. */
import { useEffect, useState } from "react";
import { useApi } from "../api/api";
import { Browse } from "../chat/browse";
import { Sidebar } from "../chat/sidebar";
import { TopicPane } from "../chat/topic-pane";
import { NotificationsPage, ReactionsPage } from "../home/notifications";
import { EveryonePage, HashtagPage, HomePage } from "../home/pages";
import { ProfilePage } from "../home/profile";
import { useUnreadNotifications } from "../home/unread";
import { useViewer } from "../session/viewer";
import { Icon } from "../ui/icons";
import { useTranslation } from "../ui/preferences";
import { EmptyState } from "../ui/states";
import { useValue } from "../ui/value";
import { AccountMenu } from "./account";
import { lazyScreen } from "./lazy-screen";
import { Palette } from "./palette";
import {
  type AdminPlace,
  type CallsPlace,
  type CommunityPlace,
  hrefOf,
  type MailPlace,
  type Place,
  type PublishingPlace,
  usePlace,
} from "./router";
import { OPERATOR_SCREENS, SCREENS, visibleScreens } from "./screens";

const AdminScreen = lazyScreen<{ place: AdminPlace }>(() =>
  import("../administration/screen").then((module) => module.AdminScreen),
);
const CallsScreen = lazyScreen<{ place: CallsPlace }>(() =>
  import("../calls/screen").then((module) => module.CallsScreen),
);
const CommunityScreen = lazyScreen<{ place: CommunityPlace }>(() =>
  import("../moderation/screen").then((module) => module.CommunityScreen),
);
const MailScreen = lazyScreen<{ place: MailPlace }>(() =>
  import("../mail/screen").then((module) => module.MailScreen),
);

const MyDataScreen = lazyScreen(() => import("../my-data/screen").then((module) => module.MyDataScreen));
const PublishingPage = lazyScreen<{ place: PublishingPlace }>(() =>
  import("../publishing/page").then((module) => module.PublishingPage),
);

export function Frame() {
  const { t } = useTranslation();
  const place = usePlace();
  const [isPaletteOpen, setIsPaletteOpen] = useState(false);
  usePaletteKey(() => setIsPaletteOpen(true));
  return (
    <div className="flex h-dvh flex-col-reverse md:flex-row">
      <button
        type="button"
        className="sr-only focus:not-sr-only focus:fixed focus:left-2 focus:top-2 focus:z-30 focus:bg-raised"
        onClick={() => document.getElementById("main")?.focus()}
      >
        {t("skip")}
      </button>
      <NavigationBar openPalette={() => setIsPaletteOpen(true)} />
      <div className="flex min-h-0 min-w-0 grow flex-col">
        <ConnectionBanner />
        <Screen place={place} />
      </div>
      {isPaletteOpen && <Palette onClose={() => setIsPaletteOpen(false)} />}
    </div>
  );
}

function usePaletteKey(openPalette: () => void): void {
  useEffect(() => {
    function handleKey(event: KeyboardEvent) {
      if (!(event.ctrlKey || event.metaKey) || event.key.toLowerCase() !== "k") return;
      event.preventDefault();
      openPalette();
    }
    addEventListener("keydown", handleKey);
    return () => removeEventListener("keydown", handleKey);
  });
}

function NavigationBar({ openPalette }: { openPalette: () => void }) {
  const { t } = useTranslation();
  const place = usePlace();
  const { roles } = useViewer();
  const unread = useUnreadNotifications();
  const screens = visibleScreens([...SCREENS, ...OPERATOR_SCREENS], roles);
  const itemClass =
    "relative flex min-h-12 min-w-0 flex-auto flex-col items-center justify-center gap-0.5 rounded-xl px-1 text-xs hover:bg-hover aria-[current]:text-accent md:min-h-14 md:flex-none md:px-0";
  return (
    <nav
      aria-label={t("screens")}
      className="flex shrink-0 border-t border-line bg-well px-1 pb-[env(safe-area-inset-bottom)] md:w-24 md:flex-col md:gap-1 md:border-r md:border-t-0 md:px-1 md:py-2"
    >
      <img src="/favicon.svg" alt="Noroshi" className="mx-auto mb-3 mt-1 hidden size-10 md:block" />
      {screens.map((screen) => (
        <a
          key={screen.textKey}
          href={hrefOf(screen.place)}
          aria-current={screen.placeNames.includes(place.name) ? "page" : undefined}
          className={`${itemClass} ${OPERATOR_SCREENS.includes(screen) ? "max-md:hidden" : ""}`}
        >
          <Icon name={screen.icon} />
          <span className="max-w-full truncate">{t(screen.textKey)}</span>
          {screen.icon === "bell" && unread > 0 && (
            <span className="absolute left-1/2 top-0.5 ml-1 rounded-full bg-accent px-1.5 text-xs font-semibold text-on-accent">
              {unread > 99 ? "99+" : unread}
              <span className="sr-only"> {t("unread")}</span>
            </span>
          )}
        </a>
      ))}
      <button type="button" onClick={openPalette} className={itemClass} title="Ctrl K">
        <Icon name="search" />
        <span className="max-w-full truncate">{t("search")}</span>
      </button>
      <div className="hidden grow md:block" />
      <AccountMenu className={itemClass} />
    </nav>
  );
}

function ConnectionBanner() {
  const { t } = useTranslation();
  const state = useValue(useApi().connection.state);
  const [isShown, setIsShown] = useState(false);
  useEffect(() => {
    setIsShown(false);
    if (state === "open") return;
    // Brief disconnects are not shown.
    const timer = setTimeout(() => setIsShown(true), state === "broken" ? 300 : 2_000);
    return () => clearTimeout(timer);
  }, [state]);
  return (
    <div role="status" data-connection={state}>
      {isShown && state !== "open" && (
        <p className="bg-wait-ground px-4 py-1.5 text-center text-sm text-wait">
          {t(navigator.onLine ? "connection.broken" : "connection.offline")}
        </p>
      )}
    </div>
  );
}

function Screen({ place }: { place: Place }) {
  const isInChat = ["chat", "topic", "browse", "community"].includes(place.name);
  return (
    <div className="flex min-h-0 grow">
      {isInChat && (
        <div
          className={`w-full shrink-0 border-r border-line bg-well md:w-72 xl:w-80 ${place.name === "chat" ? "" : "max-md:hidden"}`}
        >
          <Sidebar />
        </div>
      )}
      <main
        id="main"
        tabIndex={-1}
        className={`min-w-0 grow outline-none ${place.name === "chat" ? "max-md:hidden" : ""}`}
      >
        <Contents place={place} />
      </main>
    </div>
  );
}

function Contents({ place }: { place: Place }) {
  const { t } = useTranslation();
  switch (place.name) {
    case "topic":
      return <TopicPane key={place.id} id={place.id} at={place.at} />;
    case "browse":
      return <Browse />;
    case "chat":
      return <EmptyState icon="chat" title={t("chat.choose")} hint={t("chat.chooseHint")} />;
    case "myData":
      return <MyDataScreen />;
    case "community":
      return <CommunityScreen key={place.id} place={place} />;
    case "everyone":
      return <EveryonePage />;
    case "tag":
      return <HashtagPage key={place.tag} tag={place.tag} />;
    case "person":
      return <ProfilePage key={place.id} id={place.id} />;
    case "notifications":
      return <NotificationsPage />;
    case "reactions":
      return <ReactionsPage />;
    case "publishing":
      return <PublishingPage place={place} />;
    case "admin":
    case "adminAudit":
    case "adminInvitations":
    case "adminKeys":
      return <AdminScreen place={place} />;
    case "calls":
    case "newCallJob":
    case "callJob":
    case "callRules":
      return <CallsScreen place={place} />;
    case "mail":
    case "mailDomains":
    case "bounceRates":
      return <MailScreen place={place} />;
    default:
      return <HomePage />;
  }
}
