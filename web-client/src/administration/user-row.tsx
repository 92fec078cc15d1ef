/** One user of the organization: roles, state, and the actions of an administrator. */
import { useState } from "react";
import { request, useApi } from "../api/api";
import { rejectionText } from "../api/failure";
import { hrefOf } from "../app/router";
import { ConfirmDialog } from "../chat/confirm";
import { useViewer } from "../session/viewer";
import { Avatar } from "../ui/avatar";
import { Badge } from "../ui/badge";
import { Button } from "../ui/button";
import { useTranslation } from "../ui/preferences";
import { ReasonDialog } from "../ui/reason-dialog";
import { notify, notifyFailure } from "../ui/toasts";
import { type AdministeredUser, DeactivateUser, ReactivateUser } from "./operations";
import { RolesDialog, sortedRoles } from "./roles-dialog";

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
      <div className="flex shrink-0 flex-wrap gap-2 max-sm:pl-12">
        {!isViewer && <Actions user={user} replace={replace} />}
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

type OpenDialog = "roles" | "deactivate" | "reactivate";

function Actions({ user, replace }: Props) {
  const { t } = useTranslation();
  const { direct } = useApi();
  const [openDialog, setOpenDialog] = useState<OpenDialog | null>(null);
  const { id, name } = user;
  const access = user.deactivated ? "reactivate" : "deactivate";

  async function run(change: () => Promise<AdministeredUser>) {
    setOpenDialog(null);
    try {
      const changed = await change();
      replace(changed);
      notify(t(changed.deactivated ? "admin.deactivated" : "admin.reactivated", { name }));
    } catch (error) {
      const rejection = rejectionText(error);
      if (rejection) notify(rejection);
      else notifyFailure(error);
    }
  }
  const deactivate = (reason: string) =>
    run(async () => (await request(direct, DeactivateUser, { id, reason })).deactivateUser);
  const reactivate = () => run(async () => (await request(direct, ReactivateUser, { id })).reactivateUser);

  return (
    <>
      <Button onClick={() => setOpenDialog("roles")} aria-label={t("admin.rolesOf", { name })}>
        {t("admin.roles")}
      </Button>
      <Button onClick={() => setOpenDialog(access)} aria-label={t(`admin.${access}Named`, { name })}>
        {t(`admin.${access}`)}
      </Button>
      {openDialog === "roles" && (
        <RolesDialog
          user={user}
          onClose={() => setOpenDialog(null)}
          onChanged={(changed) => {
            setOpenDialog(null);
            replace(changed);
          }}
        />
      )}
      {openDialog === "deactivate" && (
        <ReasonDialog
          title={t("admin.deactivateNamed", { name })}
          text={t("admin.deactivateAsk")}
          action={t("admin.deactivate")}
          isDestructive
          onDone={(reason) => (reason === null ? setOpenDialog(null) : deactivate(reason))}
        />
      )}
      {openDialog === "reactivate" && (
        <ConfirmDialog
          title={t("admin.reactivateNamed", { name })}
          text={t("admin.reactivateAsk")}
          action={t("admin.reactivate")}
          kind="main"
          onDone={(isConfirmed) => (isConfirmed ? reactivate() : setOpenDialog(null))}
        />
      )}
    </>
  );
}
