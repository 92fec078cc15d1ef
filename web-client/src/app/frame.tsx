/** The layout around every screen: navigation, connection state, command palette. */
import { useEffect, useState } from "react";
import { useApi } from "../api/api";
import { useUnreadConversations } from "../chat/conversations/unread";
import { ChatSidebar } from "../chat/sidebar/sidebar";
import { TopicPane } from "../chat/topics/topic-pane";
import { useUnreadNotifications } from "../home/unread";
import { useDesktopNotifications } from "../push/desktop/use-desktop-notifications";
import { usePush } from "../push/use-push";
import { useViewer } from "../session/viewer";
import { Icon, type IconName } from "../ui/icons";
import { useDocumentTitle } from "../ui/page-title";
import { useTranslation } from "../ui/preferences";
import { EmptyState } from "../ui/states";
import { useValue } from "../ui/value";
import { MEDIUM, useIsAtLeast } from "../ui/window-width";
import { AccountMenu } from "./account";
import { lazyDialog, lazyScreen } from "./lazy-screen";
import type { CommandPaletteProps } from "./palette";
import {
  type AdminRoute,
  type CallsRoute,
  type CommunityRoute,
  hrefOf,
  type MailRoute,
  type PublishingRoute,
  type Route,
  type SearchRoute,
  useRoute,
} from "./router";
import { OPERATOR_SCREENS, SCREENS, visibleScreens } from "./screens";
import { useSignOut } from "./sign-out";

const AdminScreen = lazyScreen<{ route: AdminRoute }>(() =>
  import("../administration/screen").then((module) => module.AdminScreen),
);
const BrowseCommunitiesPage = lazyScreen(() =>
  import("../chat/sidebar/browse").then((module) => module.BrowseCommunitiesPage),
);
const CallsScreen = lazyScreen<{ route: CallsRoute }>(() =>
  import("../calls/screen").then((module) => module.CallsScreen),
);
const CommandPalette = lazyDialog<CommandPaletteProps>(() =>
  import("./palette").then((module) => module.CommandPalette),
);
const CommunityScreen = lazyScreen<{ route: CommunityRoute }>(() =>
  import("../moderation/screen").then((module) => module.CommunityScreen),
);
const EveryonePage = lazyScreen(() => import("../home/pages").then((module) => module.EveryonePage));
const HashtagPage = lazyScreen<{ tag: string }>(() =>
  import("../home/pages").then((module) => module.HashtagPage),
);
const HomePage = lazyScreen(() => import("../home/pages").then((module) => module.HomePage));
const MailScreen = lazyScreen<{ route: MailRoute }>(() =>
  import("../mail/screen").then((module) => module.MailScreen),
);
const MyDataScreen = lazyScreen(() => import("../my-data/screen").then((module) => module.MyDataScreen));
const NotificationsPage = lazyScreen(() =>
  import("../home/notifications").then((module) => module.NotificationsPage),
);
const NotificationSettingsPage = lazyScreen(() =>
  import("../push/screen").then((module) => module.NotificationSettingsPage),
);
const PostPage = lazyScreen<{ id: string }>(() =>
  import("../home/post-page").then((module) => module.PostPage),
);
const ProfilePage = lazyScreen<{ id: string }>(() =>
  import("../home/profile").then((module) => module.ProfilePage),
);
const PublishingPage = lazyScreen<{ route: PublishingRoute }>(() =>
  import("../publishing/page").then((module) => module.PublishingPage),
);
const ReactionsPage = lazyScreen(() =>
  import("../home/notifications").then((module) => module.ReactionsPage),
);
const SearchScreen = lazyScreen<{ route: SearchRoute }>(() =>
  import("../search/screen").then((module) => module.SearchScreen),
);
const ThreadsPage = lazyScreen(() =>
  import("../chat/threads/threads-page").then((module) => module.ThreadsPage),
);

export function AppFrame() {
  const { t } = useTranslation();
  const route = useRoute();
  const [isPaletteOpen, setIsPaletteOpen] = useState(false);
  const { requestSignOut, signOutQuestion } = useSignOut();
  usePush();
  useDesktopNotifications();
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
      <NavigationBar openPalette={() => setIsPaletteOpen(true)} requestSignOut={requestSignOut} />
      <div className="flex min-h-0 min-w-0 grow flex-col">
        <ConnectionBanner />
        <CurrentScreen route={route} />
      </div>
      {isPaletteOpen && (
        <CommandPalette onClose={() => setIsPaletteOpen(false)} requestSignOut={requestSignOut} />
      )}
      {signOutQuestion}
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

interface NavigationBarProps {
  openPalette: () => void;
  requestSignOut: () => void;
}

function NavigationBar({ openPalette, requestSignOut }: NavigationBarProps) {
  const { t } = useTranslation();
  const route = useRoute();
  const { roles } = useViewer();
  const unreadCounts: Partial<Record<IconName, number>> = {
    bell: useUnreadNotifications(),
    chat: useUnreadConversations(),
  };
  // A conversation with unread messages counts at both places, and once in the title.
  const unread = Math.max(...Object.values(unreadCounts));
  const screens = visibleScreens([...SCREENS, ...OPERATOR_SCREENS], roles);
  const screen = screens.find(({ routeNames }) => routeNames.includes(route.name));
  useDocumentTitle(t(screen?.textKey ?? (route.name === "search" ? "search" : "myData")), unread);
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
          href={hrefOf(screen.route)}
          aria-current={screen.routeNames.includes(route.name) ? "page" : undefined}
          className={`${itemClass} ${OPERATOR_SCREENS.includes(screen) ? "max-md:hidden" : ""}`}
        >
          <Icon name={screen.icon} />
          <span className="max-w-full truncate">{t(screen.textKey)}</span>
          <UnreadBadge count={unreadCounts[screen.icon] ?? 0} />
        </a>
      ))}
      <button type="button" onClick={openPalette} className={itemClass} title="Ctrl K">
        <Icon name="search" />
        <span className="max-w-full truncate">{t("search")}</span>
      </button>
      <div className="hidden grow md:block" />
      <AccountMenu className={itemClass} requestSignOut={requestSignOut} />
    </nav>
  );
}

function UnreadBadge({ count }: { count: number }) {
  const { t } = useTranslation();
  if (count === 0) return null;
  return (
    <span className="absolute left-1/2 top-0.5 ml-1 rounded-full bg-accent px-1.5 text-xs font-semibold whitespace-nowrap text-on-accent">
      {count > 99 ? "99+" : count}
      <span className="sr-only"> {t("unread")}</span>
    </span>
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

function CurrentScreen({ route }: { route: Route }) {
  const isInChat = ["chat", "topic", "browse", "threads", "community"].includes(route.name);
  const isWide = useIsAtLeast(MEDIUM);
  /** Whether the list of topics is all that the window shows. */
  const isListAlone = route.name === "chat" && !isWide;
  const mainProps = { id: "main", tabIndex: -1 };
  return (
    <div className="flex min-h-0 grow">
      {isInChat && (
        <div
          {...(isListAlone && { role: "main", ...mainProps })}
          className={`w-full shrink-0 border-r border-line bg-well outline-none md:w-72 xl:w-80 ${route.name === "chat" ? "" : "max-md:hidden"}`}
        >
          <ChatSidebar />
        </div>
      )}
      <main
        {...(!isListAlone && mainProps)}
        className={`min-w-0 grow outline-none ${route.name === "chat" ? "max-md:hidden" : ""}`}
      >
        <ScreenContents route={route} />
      </main>
    </div>
  );
}

function ScreenContents({ route }: { route: Route }) {
  const { t } = useTranslation();
  switch (route.name) {
    case "topic":
      return (
        <TopicPane key={route.id} {...route} thread={route.thread ?? null} reply={route.reply ?? null} />
      );
    case "threads":
      return <ThreadsPage />;
    case "browse":
      return <BrowseCommunitiesPage />;
    case "chat":
      return <EmptyState icon="chat" title={t("chat.choose")} hint={t("chat.chooseHint")} />;
    case "myData":
      return <MyDataScreen />;
    case "community":
      return <CommunityScreen key={route.id} route={route} />;
    case "everyone":
      return <EveryonePage />;
    case "tag":
      return <HashtagPage key={route.tag} tag={route.tag} />;
    case "post":
      return <PostPage key={route.id} id={route.id} />;
    case "person":
      return <ProfilePage key={route.id} id={route.id} />;
    case "notifications":
      return <NotificationsPage />;
    case "notificationSettings":
      return <NotificationSettingsPage />;
    case "reactions":
      return <ReactionsPage />;
    case "search":
      return <SearchScreen route={route} />;
    case "publishing":
      return <PublishingPage route={route} />;
    case "admin":
    case "adminAudit":
    case "adminErasures":
    case "adminHeld":
    case "adminInvitations":
    case "adminKeys":
    case "adminReports":
    case "adminSettings":
    case "adminStamps":
    case "adminWebhooks":
      return <AdminScreen route={route} />;
    case "calls":
    case "newCallJob":
    case "callJob":
    case "callRules":
      return <CallsScreen route={route} />;
    case "mail":
    case "mailDomains":
    case "mailPolicy":
    case "bounceRates":
      return <MailScreen route={route} />;
    default:
      return <HomePage />;
  }
}
