/** An administrator's actions on one user: roles, access, packs of stamps, browsers and erasure. */
import { useState } from "react";
import { request, useApi } from "../api/api";
import { EraseDialog } from "../privacy/erase-dialog";
import { OwnedPacksDialog } from "../stamps/owned-packs-dialog";
import { Button } from "../ui/button";
import { ConfirmDialog } from "../ui/dialogs/confirm";
import { Menu } from "../ui/dialogs/menu";
import { ReasonDialog } from "../ui/dialogs/reason-dialog";
import { useTranslation } from "../ui/preferences";
import { notify, notifyError } from "../ui/toasts";
import { type AdministeredUser, DeactivateUser, ReactivateUser } from "./operations";
import { RolesDialog } from "./roles-dialog";
import { SignOutDialog } from "./sign-out-dialog";

type OpenDialog = "roles" | "deactivate" | "reactivate" | "packs" | "signOut" | "erase";

interface Props {
  user: AdministeredUser;
  replace: (changed: AdministeredUser) => void;
}

export function UserActions({ user, replace }: Props) {
  const { t } = useTranslation();
  const { direct } = useApi();
  const [openDialog, setOpenDialog] = useState<OpenDialog | null>(null);
  const { id, name } = user;
  const accessChange = user.deactivated ? "reactivate" : "deactivate";

  const close = () => setOpenDialog(null);

  async function run(change: () => Promise<void>) {
    close();
    try {
      await change();
    } catch (error) {
      notifyError(error);
    }
  }
  function showChangedAccess(changed: AdministeredUser) {
    replace(changed);
    notify(t(changed.deactivated ? "admin.deactivated" : "admin.reactivated", { name }));
  }
  const deactivate = (reason: string) =>
    run(async () =>
      showChangedAccess((await request(direct, DeactivateUser, { id, reason })).deactivateUser),
    );
  const reactivate = () =>
    run(async () => showChangedAccess((await request(direct, ReactivateUser, { id })).reactivateUser));

  return (
    <>
      <Button onClick={() => setOpenDialog("roles")} aria-label={t("admin.rolesOf", { name })}>
        {t("admin.roles")}
      </Button>
      <Button
        onClick={() => setOpenDialog(accessChange)}
        aria-label={t(`admin.${accessChange}Named`, { name })}
      >
        {t(`admin.${accessChange}`)}
      </Button>
      <Menu
        label={t("admin.more", { name })}
        items={[
          { key: "packs", text: t("admin.packs"), run: () => setOpenDialog("packs") },
          { key: "signOut", text: t("admin.signOut"), run: () => setOpenDialog("signOut") },
          { key: "erase", text: t("admin.erase"), isDestructive: true, run: () => setOpenDialog("erase") },
        ]}
      />
      {openDialog === "roles" && (
        <RolesDialog
          user={user}
          onClose={close}
          onChanged={(changed) => {
            close();
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
          onDone={(reason) => (reason === null ? close() : deactivate(reason))}
        />
      )}
      {openDialog === "reactivate" && (
        <ConfirmDialog
          title={t("admin.reactivateNamed", { name })}
          text={t("admin.reactivateAsk")}
          action={t("admin.reactivate")}
          kind="main"
          onDone={(isConfirmed) => (isConfirmed ? reactivate() : close())}
        />
      )}
      {openDialog === "packs" && <OwnedPacksDialog user={user} onClose={close} />}
      {openDialog === "signOut" && <SignOutDialog user={user} onClose={close} />}
      {openDialog === "erase" && (
        <EraseDialog
          user={user}
          title={t("erase.title", { name })}
          text={t("erase.ask")}
          action={t("erase.action")}
          onClose={close}
          onErased={() => {
            close();
            replace({ ...user, deactivated: true });
            notify(t("erase.requested"));
          }}
        />
      )}
    </>
  );
}
