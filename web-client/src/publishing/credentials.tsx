/** The field of an account's credentials, and the dialog that replaces them. */
import { useState } from "react";
import { useMutation } from "urql";
import { Button } from "../ui/button";
import { Dialog } from "../ui/dialogs/dialog";
import { LabelledField } from "../ui/fields/labelled-field";
import { type Translate, useTranslation } from "../ui/preferences";
import { notify } from "../ui/toasts";
import { ReconnectInBrowserButton } from "./browser-connection";
import { type ConnectedAccount, type Network, ReplaceCredentials } from "./operations";
import { FormError, type FormSubmission, rejectionMessage, useSubmission } from "./posts/form-error";
import { type InputRejection, rejectionOf } from "./posts/rejections";

const SANDBOX_BEHAVIOURS = ["ok", "fail", "lose", "slow"] as const;

/** Returns the credentials with which a form begins. */
export function firstCredentials(network: Network): string {
  return network === "SANDBOX" ? "ok" : "";
}

interface Props {
  network: Network;
  value: string;
  onChange: (credentials: string) => void;
  submission: FormSubmission;
}

/** The field for the credentials of a network. Shows why they were refused; the network's reason is in its own words. */
export function CredentialsField({ network, value, onChange, submission }: Props) {
  const { t } = useTranslation();
  const rejection = credentialsRejectionOf(submission);
  if (network === "SANDBOX")
    return (
      <LabelledField label={t("publishing.behaviour")}>
        {(props) => (
          <select
            {...props}
            className="field"
            value={value}
            onChange={(event) => onChange(event.target.value)}
          >
            {SANDBOX_BEHAVIOURS.map((behaviour) => (
              <option key={behaviour} value={behaviour}>
                {t(`publishing.behaviour.${behaviour}`)}
              </option>
            ))}
          </select>
        )}
      </LabelledField>
    );
  return (
    <LabelledField
      label={t("publishing.credentials")}
      hint={t(`publishing.credentials.${network}`)}
      error={rejection && textOf(rejection, t)}
    >
      {(props) => (
        <input
          {...props}
          className="field font-mono text-sm"
          type="password"
          required
          autoComplete="off"
          value={value}
          onChange={(event) => onChange(event.target.value)}
        />
      )}
    </LabelledField>
  );
}

/** The error of a form with credentials, unless the field shows it. */
export function CredentialsFormError(submission: FormSubmission) {
  return credentialsRejectionOf(submission) ? null : <FormError {...submission} />;
}

function textOf(rejection: InputRejection, t: Translate): string {
  const { reason } = rejection;
  return reason === undefined
    ? rejectionMessage(rejection, t)
    : t("publishing.credentialsRefused", { reason });
}

function credentialsRejectionOf({ error }: FormSubmission) {
  const rejection = error === null ? null : rejectionOf(error);
  return rejection?.field === "credentials" ? rejection : null;
}

/** Replaces the credentials of a connected account. Posts that wait for it go on with the new ones. */
export function ReplaceCredentialsDialog({
  account,
  networks,
  onClose,
}: {
  account: ConnectedAccount;
  /** The networks at which the person can allow access in the browser. */
  networks: readonly Network[];
  onClose: () => void;
}) {
  const { t } = useTranslation();
  const submission = useSubmission();
  const [, replace] = useMutation(ReplaceCredentials);
  const [credentials, setCredentials] = useState(() => firstCredentials(account.network));
  const [idempotencyKey] = useState(() => crypto.randomUUID());
  const canReplace = credentials !== "" && !submission.isBusy;

  async function send() {
    const { error } = await replace({ input: { accountId: account.id, credentials, idempotencyKey } });
    if (error) throw error;
    notify(t("publishing.credentialsReplaced", { name: account.name }));
    onClose();
  }

  return (
    <Dialog title={t("publishing.replace", { name: account.name })} onClose={onClose}>
      <form
        className="flex flex-col gap-3"
        onSubmit={(event) => {
          event.preventDefault();
          if (canReplace) void submission.run(send);
        }}
      >
        <p>{t("publishing.replaceHint")}</p>
        <ReconnectInBrowserButton account={account} networks={networks} />
        <CredentialsField
          network={account.network}
          value={credentials}
          onChange={setCredentials}
          submission={submission}
        />
        <CredentialsFormError {...submission} />
        <div className="mt-2 flex justify-end gap-2">
          <Button onClick={onClose}>{t("cancel")}</Button>
          <Button type="submit" kind="main" disabled={!canReplace}>
            {t("publishing.replaceDo")}
          </Button>
        </div>
      </form>
    </Dialog>
  );
}
