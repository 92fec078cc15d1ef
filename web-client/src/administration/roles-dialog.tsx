/** The dialog in which an administrator chooses a user's roles. */
import { type FormEvent, useState } from "react";
import { request, useApi } from "../api/api";
import { failureTextKey, rejectionText } from "../api/failure";
import { Button } from "../ui/button";
import { Dialog } from "../ui/dialog";
import { useTranslation } from "../ui/preferences";
import { notify } from "../ui/toasts";
import { type AdministeredUser, type Role, SetUserRoles } from "./operations";

/** All roles, those with the most rights last. */
export const ROLES: readonly Role[] = ["MEMBER", "OPERATOR", "SERVICE", "ADMIN"];

export function sortedRoles(roles: readonly Role[]): Role[] {
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
  const [roles, setRoles] = useState<readonly Role[]>(user.roles);
  const [isSaving, setIsSaving] = useState(false);
  const [errorText, setErrorText] = useState<string | null>(null);
  const canSave = roles.length > 0 && !isSaving;

  async function save(event: FormEvent) {
    event.preventDefault();
    if (!canSave) return;
    setIsSaving(true);
    try {
      const { setUserRoles: changed } = await request(direct, SetUserRoles, {
        id: user.id,
        roles: [...roles],
      });
      notify(t("admin.rolesSaved", { name: user.name }));
      onChanged(changed);
    } catch (error) {
      setErrorText(rejectionText(error) ?? t(failureTextKey(error)));
      setIsSaving(false);
    }
  }

  return (
    <Dialog title={t("admin.rolesOf", { name: user.name })} onClose={onClose}>
      <form onSubmit={save} className="flex flex-col gap-4">
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
        {errorText && (
          <p role="alert" className="text-bad">
            {errorText}
          </p>
        )}
        <div className="flex justify-end gap-2">
          <Button onClick={onClose}>{t("cancel")}</Button>
          <Button type="submit" kind="main" disabled={!canSave}>
            {t("save")}
          </Button>
        </div>
      </form>
    </Dialog>
  );
}

interface ChoiceProps {
  role: Role;
  isChosen: boolean;
  onChange: (isChosen: boolean) => void;
}

function RoleChoice({ role, isChosen, onChange }: ChoiceProps) {
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
