/** Signing in with a mail address and a password, and asking for a link to reset the password. */
import { useState } from "react";
import { useTranslation } from "../ui/preferences";
import { AccountForm, AddressField, PasswordField, TextButton } from "./account-form";
import { AccountFailure, sendAccountRequest } from "./account-requests";
import { resumeSession } from "./session";

/** Takes over the session that an answer has begun. Throws: AccountFailure. */
export async function enterSession(): Promise<void> {
  const isSignedIn = await resumeSession().catch(() => false);
  if (!isSignedIn) throw new AccountFailure("UNKNOWN");
}

type Step = "signIn" | "forgotten" | "register" | "mailed";

export function PasswordSignIn({ canRegister }: { canRegister: boolean }) {
  const { t, language } = useTranslation();
  const [step, setStep] = useState<Step>("signIn");
  if (step === "mailed") return <Mailed back={() => setStep("signIn")} />;
  if (step !== "signIn") {
    const isReset = step === "forgotten";
    return (
      <AccountForm
        key={step}
        title={t(isReset ? "local.forgotten" : "local.register")}
        lead={t(isReset ? "local.forgottenLead" : "local.registerLead")}
        action={t("local.sendMail")}
        submit={async ({ address }) => {
          await sendAccountRequest(isReset ? "/accounts/reset-request" : "/accounts", { address, language });
          setStep("mailed");
        }}
        footer={<TextButton onClick={() => setStep("signIn")}>{t("back")}</TextButton>}
      >
        <AddressField />
      </AccountForm>
    );
  }
  return (
    <AccountForm
      key={step}
      title={t("signIn")}
      action={t("signIn")}
      submit={async ({ address, password }) => {
        await sendAccountRequest("/sign-in/password", { address, password });
        await enterSession();
      }}
      footer={
        <>
          <TextButton onClick={() => setStep("forgotten")}>{t("local.forgotten")}</TextButton>
          {canRegister && <TextButton onClick={() => setStep("register")}>{t("local.register")}</TextButton>}
        </>
      }
    >
      <AddressField />
      <PasswordField />
    </AccountForm>
  );
}

export function Mailed({ back }: { back?: () => void }) {
  const { t } = useTranslation();
  return (
    <section role="status" className="max-w-md">
      <h2 className="text-xl font-semibold">{t("local.mailed")}</h2>
      <p className="mt-1 text-quiet">{t("local.mailedLead")}</p>
      {back && <TextButton onClick={back}>{t("back")}</TextButton>}
    </section>
  );
}
