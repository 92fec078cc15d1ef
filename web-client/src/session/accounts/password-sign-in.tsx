/** Signing in with a mail address and a password, and asking for a link to reset the password. */
import { useRef, useState } from "react";
import { flushSync } from "react-dom";
import { useTranslation } from "../../ui/preferences";
import { resumeSession } from "../session";
import { AccountForm, AddressField, PasswordField, TextButton } from "./account-form";
import { AccountFailure, sendAccountRequest } from "./account-requests";

/** Signs in with the session that the server began when it answered a request. Throws: AccountFailure. */
export async function enterSession(): Promise<void> {
  const isSignedIn = await resumeSession().catch(() => false);
  if (!isSignedIn) throw new AccountFailure("UNKNOWN");
}

type PasswordSignInStep = "signIn" | "forgotten" | "register" | "mailed";

export function PasswordSignIn({ canRegister }: { canRegister: boolean }) {
  const [step, setStep] = useState<PasswordSignInStep>("signIn");
  const form = useRef<HTMLDivElement>(null);
  function changeStep(next: PasswordSignInStep) {
    flushSync(() => setStep(next));
    // The button that had the focus is gone.
    form.current?.querySelector<HTMLElement>("input, button")?.focus();
  }
  return (
    <div ref={form}>
      <CurrentStep step={step} setStep={changeStep} canRegister={canRegister} />
    </div>
  );
}

interface CurrentStepProps {
  step: PasswordSignInStep;
  setStep: (step: PasswordSignInStep) => void;
  canRegister: boolean;
}

function CurrentStep({ step, setStep, canRegister }: CurrentStepProps) {
  const { t, language } = useTranslation();
  if (step === "mailed") return <MailSentNotice back={() => setStep("signIn")} />;
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

export function MailSentNotice({ back }: { back?: () => void }) {
  const { t } = useTranslation();
  return (
    <section role="status" className="max-w-md">
      <h2 className="text-xl font-semibold">{t("local.mailed")}</h2>
      <p className="mt-1 text-quiet">{t("local.mailedLead")}</p>
      {back && (
        <p className="mt-3">
          <TextButton onClick={back}>{t("back")}</TextButton>
        </p>
      )}
    </section>
  );
}
