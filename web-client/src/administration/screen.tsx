/** The administration: users, invitations, service keys, webhooks, reports, held posts, erasures, stamps, settings and the audit log. */
import { lazyScreen } from "../app/lazy-screen";
import { type AdminRoute, hrefOf, type WebhooksRoute } from "../app/router";
import { CallLimitsSection } from "../calls/limits-section";
import { TelephonyLinesSection } from "../calls/lines-section";
import { OrganizationPresenceSection } from "../presence/settings";
import { ErasureList } from "../privacy/erasure-list";
import { RetentionSection } from "../privacy/retention-section";
import { AccountsSection } from "../publishing/accounts";
import { ReportList } from "../reports/report-list";
import { mayAdminister } from "../session/permissions";
import { useViewer } from "../session/viewer";
import { StampPackList } from "../stamps/pack-list";
import { useTranslation } from "../ui/preferences";
import { EmptyState } from "../ui/states";
import { Tab } from "../ui/tabs";
import { AuditTimeline } from "./audit/timeline";
import { HeldPostList } from "./held-list";
import { InvitationList } from "./invitations/list";
import { ServiceKeyList } from "./keys/list";
import { UserList } from "./user-list";

const WebhooksScreen = lazyScreen<{ route: WebhooksRoute }>(() =>
  import("./webhooks/screen").then((module) => module.WebhooksScreen),
);

const TABS = [
  { route: { name: "admin" }, textKey: "admin.users" },
  { route: { name: "adminInvitations" }, textKey: "admin.invitations" },
  { route: { name: "adminKeys" }, textKey: "admin.keys" },
  { route: { name: "adminWebhooks", webhook: null }, textKey: "admin.webhooks" },
  { route: { name: "adminReports" }, textKey: "admin.reports" },
  { route: { name: "adminHeld" }, textKey: "admin.held" },
  { route: { name: "adminErasures" }, textKey: "admin.erasures" },
  { route: { name: "adminStamps" }, textKey: "admin.stamps" },
  { route: { name: "adminSettings" }, textKey: "admin.settings" },
  { route: { name: "adminAudit", actor: null, target: null }, textKey: "admin.audit" },
] as const;

export function AdminScreen({ route }: { route: AdminRoute }) {
  const { t } = useTranslation();
  const { roles } = useViewer();
  return (
    <div className="thin-scroll h-full overflow-y-auto">
      <h1 className="sr-only">{t("admin")}</h1>
      {mayAdminister(roles) ? (
        <div className="mx-auto max-w-4xl px-3 pb-16 sm:px-6">
          <AdminTabs current={route.name} />
          <AdminContents route={route} />
        </div>
      ) : (
        <EmptyState icon="shield" title={t("admin.forbidden")} hint={t("admin.forbiddenHint")} />
      )}
    </div>
  );
}

function AdminTabs({ current }: { current: AdminRoute["name"] }) {
  const { t } = useTranslation();
  return (
    <nav
      aria-label={t("admin")}
      className="flex flex-wrap items-center gap-1 py-4 max-sm:gap-0 max-sm:text-sm"
    >
      {TABS.map(({ route, textKey }) => (
        <Tab key={textKey} href={hrefOf(route)} isCurrent={current === route.name}>
          {t(textKey)}
        </Tab>
      ))}
    </nav>
  );
}

function AdminContents({ route }: { route: AdminRoute }) {
  switch (route.name) {
    case "adminAudit":
      return <AuditTimeline route={route} />;
    case "adminErasures":
      return <ErasureList />;
    case "adminHeld":
      return <HeldPostList />;
    case "adminInvitations":
      return <InvitationList />;
    case "adminKeys":
      return <ServiceKeyList />;
    case "adminReports":
      return <ReportList communityId={null} />;
    case "adminSettings":
      return (
        <>
          <OrganizationPresenceSection />
          <RetentionSection />
          <CallLimitsSection />
          <TelephonyLinesSection />
          <AccountsSection />
        </>
      );
    case "adminStamps":
      return <StampPackList />;
    case "adminWebhooks":
      return <WebhooksScreen route={route} />;
    default:
      return <UserList />;
  }
}
