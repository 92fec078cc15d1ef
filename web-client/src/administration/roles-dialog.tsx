/** The dialog in which an administrator chooses a user's roles. */
import { useState } from "react";
import { request, useApi } from "../api/api";
import { FormDialog } from "../ui/dialogs/form-dialog";
import { useTranslation } from "../ui/preferences";
import { notify } from "../ui/toasts";
import { type AdministeredUser, type OrganizationRole, SetUserRoles } from "./operations";

/** All roles in the order in which they are shown. ADMIN, which has the most rights, is last. */
export const ROLES: readonly OrganizationRole[] = ["MEMBER", "OPERATOR", "SERVICE", "ADMIN"];

export function sortedRoles(roles: readonly OrganizationRole[]): OrganizationRole[] {
  return ROLES.filter((role) => roles.includes(role));
}

interface Props {
  user: AdministeredUser;
  onClose: () => void;
  onChanged: (changed: AdministeredUser) => void;
}

export function RolesDialog({ user, onClose, onChanged }: Props) {
  const { t } = useTranslation();
  const { direct } = useApi();
  const [roles, setRoles] = useState<readonly OrganizationRole[]>(user.roles);

  async function save() {
    const variables = { id: user.id, roles: [...roles] };
    const { setUserRoles: changed } = await request(direct, SetUserRoles, variables);
    notify(t("admin.rolesSaved", { name: user.name }));
    onChanged(changed);
  }

  return (
    <FormDialog
      title={t("admin.rolesOf", { name: user.name })}
      action={t("save")}
      canSubmit={roles.length > 0}
      submit={save}
      onClose={onClose}
    >
      <fieldset className="flex flex-col gap-1">
        <legend className="sr-only">{t("admin.roles")}</legend>
        {ROLES.map((role) => (
          <RoleChoice
            key={role}
            role={role}
            isChosen={roles.includes(role)}
            onChange={(isChosen) =>
              setRoles(isChosen ? [...roles, role] : roles.filter((each) => each !== role))
            }
          />
        ))}
      </fieldset>
      <p className="text-sm text-quiet">{t("admin.rolesHint")}</p>
      {roles.length === 0 && <p className="text-sm text-bad">{t("admin.rolesNone")}</p>}
    </FormDialog>
  );
}

interface RoleChoiceProps {
  role: OrganizationRole;
  isChosen: boolean;
  onChange: (isChosen: boolean) => void;
}

function RoleChoice({ role, isChosen, onChange }: RoleChoiceProps) {
  const { t } = useTranslation();
  return (
    <label className="flex cursor-pointer items-start gap-3 rounded-xl px-2 py-2 hover:bg-hover">
      <input
        type="checkbox"
        className="mt-1 size-4 shrink-0 accent-accent"
        checked={isChosen}
        onChange={(event) => onChange(event.target.checked)}
      />
      <span>
        <span className="block font-medium">{t(`role.${role}`)}</span>
        <span className="block text-sm text-quiet">{t(`role.${role}.hint`)}</span>
      </span>
    </label>
  );
}
