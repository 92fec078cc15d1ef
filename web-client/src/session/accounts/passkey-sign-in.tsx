/** The button that signs in with a passkey, and the choice between a passkey and a password for a new account. */
import { type ReactNode, useState } from "react";
import { useTranslation } from "../../ui/preferences";
import { browserName } from "../browsers/browser-name";
import { AccountForm, PasswordField, TextButton } from "./account-form";
import { createPasskey, signInWithPasskey, supportsPasskeys } from "./passkeys";
import { enterSession } from "./password-sign-in";

export function PasskeySignIn() {
  const { t } = useTranslation();
  if (!supportsPasskeys()) return null;
  return (
    <AccountForm
      title={t("passkeys.passkey")}
      lead={t("passkeys.signInLead")}
      action={t("passkeys.signIn")}
      submit={async () => {
        await signInWithPasskey();
        await enterSession();
      }}
    />
  );
}

/** Returns the name of a new passkey: the browser's name. */
export function useNewPasskeyName(): string {
  const { t } = useTranslation();
  return browserName(navigator.userAgent) ?? t("passkeys.passkey");
}

interface NewCredential {
  /** The password field, unless the person chose a passkey. */
  field: ReactNode;
  /** The button that switches between a password and a passkey; false if the browser has no passkeys. */
  choice: ReactNode;
  /** Returns the password or the passkey, for the request that creates the account. Throws: AccountFailure. */
  create(values: Record<string, string>, link: Record<string, string>): Promise<object>;
}

/** Lets a person with a link choose a password or a passkey. */
export function useNewCredential(): NewCredential {
  const { t } = useTranslation();
  const [isPasskey, setIsPasskey] = useState(false);
  const passkeyName = useNewPasskeyName();
  return {
    field: isPasskey ? <p className="text-quiet">{t("passkeys.createLead")}</p> : <PasswordField isNew />,
    choice: supportsPasskeys() && (
      <TextButton onClick={() => setIsPasskey(!isPasskey)}>
        {t(isPasskey ? "passkeys.usePassword" : "passkeys.usePasskey")}
      </TextButton>
    ),
    create: async (values, link) =>
      isPasskey
        ? { passkey: await createPasskey("/accounts/options", { ...values, ...link }), passkeyName }
        : { password: values.password },
  };
}
