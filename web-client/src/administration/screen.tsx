/** The administration: users, invitations, service keys and the audit log. */
import { type AdminPlace, hrefOf } from "../app/router";
import { mayAdminister } from "../session/permissions";
import { useViewer } from "../session/viewer";
import { useTranslation } from "../ui/preferences";
import { EmptyState } from "../ui/states";
import { Tab } from "../ui/tabs";
import { AuditTimeline } from "./audit-timeline";
import { InvitationList } from "./invitation-list";
import { KeyList } from "./key-list";
import { UserList } from "./user-list";

const TABS = [
  { place: { name: "admin" }, textKey: "admin.users" },
  { place: { name: "adminInvitations" }, textKey: "admin.invitations" },
  { place: { name: "adminKeys" }, textKey: "admin.keys" },
  { place: { name: "adminAudit", actor: null, target: null }, textKey: "admin.audit" },
] as const;

export function AdminScreen({ place }: { place: AdminPlace }) {
  const { t } = useTranslation();
  const { roles } = useViewer();
  return (
    <div className="thin-scroll h-full overflow-y-auto">
      <h1 className="sr-only">{t("admin")}</h1>
      {mayAdminister(roles) ? (
        <div className="mx-auto max-w-4xl px-3 pb-16 sm:px-6">
          <Tabs current={place.name} />
          <Contents place={place} />
        </div>
      ) : (
        <EmptyState icon="shield" title={t("admin.forbidden")} hint={t("admin.forbiddenHint")} />
      )}
    </div>
  );
}

function Tabs({ current }: { current: AdminPlace["name"] }) {
  const { t } = useTranslation();
  return (
    <nav
      aria-label={t("admin")}
      className="flex flex-wrap items-center gap-1 py-4 max-sm:gap-0 max-sm:text-sm"
    >
      {TABS.map(({ place, textKey }) => (
        <Tab key={textKey} href={hrefOf(place)} isCurrent={current === place.name}>
          {t(textKey)}
        </Tab>
      ))}
    </nav>
  );
}

function Contents({ place }: { place: AdminPlace }) {
  switch (place.name) {
    case "adminAudit":
      return <AuditTimeline place={place} />;
    case "adminInvitations":
      return <InvitationList />;
    case "adminKeys":
      return <KeyList />;
    default:
      return <UserList />;
  }
}
