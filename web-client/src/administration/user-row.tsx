/** One user of the organization: roles, state, and the actions of an administrator. */
import { hrefOf } from "../app/router";
import { useViewer } from "../session/viewer";
import { Avatar } from "../ui/avatar";
import { Badge } from "../ui/badge";
import { useTranslation } from "../ui/preferences";
import type { AdministeredUser } from "./operations";
import { sortedRoles } from "./roles-dialog";
import { UserActions } from "./user-actions";

interface Props {
  user: AdministeredUser;
  replace: (changed: AdministeredUser) => void;
}

export function UserRow({ user, replace }: Props) {
  const { t } = useTranslation();
  const isViewer = useViewer().id === user.id;
  return (
    <li
      data-user={user.id}
      className="flex flex-wrap items-center gap-x-4 gap-y-2 border-b border-line py-3 sm:flex-nowrap"
    >
      <div className={`flex min-w-0 grow items-center gap-3 ${user.deactivated ? "opacity-80" : ""}`}>
        <Avatar user={user} />
        <div className="min-w-0">
          <p className="flex flex-wrap items-baseline gap-x-2">
            <a href={hrefOf({ name: "person", id: user.id })} className="font-semibold hover:underline">
              {user.name}
            </a>
            <span className="truncate text-sm text-quiet">@{user.handle}</span>
          </p>
          <p className="mt-1 flex flex-wrap gap-1">
            {isViewer && <Badge tone="good">{t("admin.you")}</Badge>}
            {user.deactivated && <Badge tone="bad">{t("admin.state.deactivated")}</Badge>}
            {sortedRoles(user.roles).map((role) => (
              <Badge key={role} tone={role === "ADMIN" ? "live" : "quiet"}>
                {t(`role.${role}`)}
              </Badge>
            ))}
          </p>
        </div>
      </div>
      <div className="flex flex-wrap gap-2 max-sm:gap-1 max-sm:pl-0 sm:shrink-0">
        {!isViewer && <UserActions user={user} replace={replace} />}
        <a
          href={hrefOf({ name: "adminAudit", actor: null, target: user.id })}
          aria-label={t("admin.historyOf", { name: user.name })}
          className="inline-flex min-h-9 items-center rounded-full px-3 text-quiet hover:bg-hover hover:text-ink"
        >
          {t("admin.history")}
        </a>
      </div>
    </li>
  );
}
