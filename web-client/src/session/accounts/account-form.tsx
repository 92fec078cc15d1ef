/** The form of account screens: fields, a button, and the reason why a request failed. */
import { type FormEvent, type ReactNode, useState } from "react";
import type { TextKey } from "../../i18n/texts";
import { Button } from "../../ui/button";
import { LabelledField } from "../../ui/fields/labelled-field";
import { useTranslation } from "../../ui/preferences";
import { accountFailureTextKey } from "./account-requests";

interface AccountFormProps {
  title: string;
  lead?: string;
  action: string;
  /** Sends the request. The form shows why it failed. */
  submit(values: Record<string, string>): Promise<void>;
  children?: ReactNode;
  footer?: ReactNode;
}

export function AccountForm({ title, lead, action, submit, children, footer }: AccountFormProps) {
  const { t } = useTranslation();
  const [failure, setFailure] = useState<TextKey | null>(null);
  const [isSending, setIsSending] = useState(false);

  async function send(event: FormEvent<HTMLFormElement>) {
    event.preventDefault();
    if (isSending) return;
    const values = Object.fromEntries(new FormData(event.currentTarget)) as Record<string, string>;
    setIsSending(true);
    setFailure(null);
    try {
      await submit(values);
    } catch (error) {
      setFailure(accountFailureTextKey(error));
    } finally {
      setIsSending(false);
    }
  }

  return (
    <section aria-label={title} className="max-w-md">
      <h2 className="text-xl font-semibold">{title}</h2>
      {lead && <p className="mt-1 text-quiet">{lead}</p>}
      <form onSubmit={send} className="mt-4 flex flex-col gap-4">
        {children}
        {failure && (
          <p role="alert" className="rounded-card bg-wait-ground px-4 py-3 text-wait">
            {t(failure)}
          </p>
        )}
        <div className="flex flex-wrap items-center gap-4">
          <Button type="submit" kind="main" isBusy={isSending}>
            {action}
          </Button>
          {footer}
        </div>
      </form>
    </section>
  );
}

export function AddressField({ value }: { value?: string }) {
  const { t } = useTranslation();
  return (
    <LabelledField label={t("local.address")}>
      {(props) => (
        <input
          {...props}
          className="field"
          name="address"
          type="email"
          autoComplete="username"
          required
          readOnly={value !== undefined}
          defaultValue={value}
        />
      )}
    </LabelledField>
  );
}

export function NameField() {
  const { t } = useTranslation();
  return (
    <LabelledField label={t("local.name")} hint={t("local.nameHint")}>
      {(props) => <input {...props} className="field" name="name" autoComplete="name" required />}
    </LabelledField>
  );
}

export function PasswordField({ isNew = false, name = "password" }: { isNew?: boolean; name?: string }) {
  const { t } = useTranslation();
  const label =
    name === "currentPassword" ? "local.currentPassword" : isNew ? "local.newPassword" : "local.password";
  return (
    <LabelledField label={t(label)} hint={isNew ? t("local.passwordHint") : undefined}>
      {(props) => (
        <input
          {...props}
          className="field"
          name={name}
          type="password"
          autoComplete={isNew ? "new-password" : "current-password"}
          required
          minLength={isNew ? 10 : undefined}
        />
      )}
    </LabelledField>
  );
}

/** A button that looks like a link, for actions other than sending the form. */
export function TextButton({ onClick, children }: { onClick: () => void; children: ReactNode }) {
  return (
    <button type="button" onClick={onClick} className="min-h-9 text-accent underline underline-offset-2">
      {children}
    </button>
  );
}
