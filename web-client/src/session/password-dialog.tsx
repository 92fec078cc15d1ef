/** The dialog in which people who sign in with a password choose another one. */
import { Dialog } from "../ui/dialog";
import { useTranslation } from "../ui/preferences";
import { notify } from "../ui/toasts";
import { AccountForm, PasswordField } from "./account-form";
import { sendAccountRequest } from "./account-requests";

export function PasswordDialog({ onClose }: { onClose: () => void }) {
  const { t } = useTranslation();
  return (
    <Dialog title={t("local.security")} onClose={onClose}>
      <AccountForm
        title={t("local.changePassword")}
        lead={t("local.changePasswordLead")}
        action={t("save")}
        submit={async (values) => {
          await sendAccountRequest("/accounts/password", values);
          notify(t("local.passwordChanged"));
          onClose();
        }}
      >
        <PasswordField name="currentPassword" />
        <PasswordField isNew />
      </AccountForm>
    </Dialog>
  );
}
