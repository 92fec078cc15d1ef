/** The dialog in which people who sign in with a password choose another password. */
import { Button } from "../../ui/button";
import { Dialog } from "../../ui/dialogs/dialog";
import { useTranslation } from "../../ui/preferences";
import { notify } from "../../ui/toasts";
import { AccountForm, PasswordField } from "./account-form";
import { changePassword } from "./account-requests";

export function PasswordDialog({ onClose }: { onClose: () => void }) {
  const { t } = useTranslation();
  return (
    <Dialog title={t("local.security")} onClose={onClose}>
      <AccountForm
        title={t("local.changePassword")}
        lead={t("local.changePasswordLead")}
        action={t("save")}
        submit={async (values) => {
          await changePassword(values);
          notify(t("local.passwordChanged"));
          onClose();
        }}
        footer={<Button onClick={onClose}>{t("cancel")}</Button>}
      >
        <PasswordField name="currentPassword" />
        <PasswordField isNew />
      </AccountForm>
    </Dialog>
  );
}
