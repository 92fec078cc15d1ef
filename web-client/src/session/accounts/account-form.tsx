/** The form of account screens: fields, a button, and the reason why a request failed. */
import { createContext, type FormEvent, type ReactNode, useContext, useState } from "react";
import type { TextKey } from "../../i18n/texts";
import { Button } from "../../ui/button";
import { LabelledField } from "../../ui/fields/labelled-field";
import { useTranslation } from "../../ui/preferences";
import { isHandle, typedHandle } from "../handles";
import { AccountFailure, accountFailureTextKey } from "./account-requests";

interface Refusal {
  textKey: TextKey;
  /** The name of the field that was refused; null if the form has no such field. */
  field: string | null;
}

const RefusalContext = createContext<Refusal | null>(null);

/** Returns why a field of the form was refused; null if it was not. */
function useFieldError(name: string): string | null {
  const { t } = useTranslation();
  const refusal = useContext(RefusalContext);
  return refusal?.field === name ? t(refusal.textKey) : null;
}

/** Replaces the typed handle by the one that is meant. Throws: AccountFailure. */
function withHandle(values: Record<string, string>): Record<string, string> {
  if (!values.handle) return values;
  const handle = typedHandle(values.handle);
  if (!isHandle(handle)) throw new AccountFailure("BAD_USER_INPUT", "handle");
  return { ...values, handle };
}

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
  const [refusal, setRefusal] = useState<Refusal | null>(null);
  const [isSending, setIsSending] = useState(false);

  async function send(event: FormEvent<HTMLFormElement>) {
    event.preventDefault();
    if (isSending) return;
    const form = event.currentTarget;
    const values = Object.fromEntries(new FormData(form)) as Record<string, string>;
    setIsSending(true);
    setRefusal(null);
    try {
      await submit(withHandle(values));
    } catch (error) {
      const field = form.elements.namedItem((error as AccountFailure).field ?? "");
      const input = field instanceof HTMLInputElement ? field : null;
      setRefusal({ textKey: accountFailureTextKey(error), field: input?.name ?? null });
      input?.focus();
    } finally {
      setIsSending(false);
    }
  }

  return (
    <section aria-label={title} className="max-w-md">
      <h2 className="text-xl font-semibold">{title}</h2>
      {lead && <p className="mt-1 text-quiet">{lead}</p>}
      <form onSubmit={send} className="mt-4 flex flex-col gap-4">
        <RefusalContext value={refusal}>{children}</RefusalContext>
        {refusal && refusal.field === null && (
          <p role="alert" className="rounded-card bg-wait-ground px-4 py-3 text-wait">
            {t(refusal.textKey)}
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
    <LabelledField label={t("local.address")} error={useFieldError("address")}>
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
    <LabelledField label={t("local.name")} hint={t("local.nameHint")} error={useFieldError("name")}>
      {(props) => <input {...props} className="field" name="name" autoComplete="name" required />}
    </LabelledField>
  );
}

/** The field of the wished handle. If it is empty, the server derives a handle from the name. */
export function HandleField() {
  const { t } = useTranslation();
  return (
    <LabelledField label={t("local.handle")} hint={t("local.handleHint")} error={useFieldError("handle")}>
      {(props) => (
        <input
          {...props}
          className="field"
          name="handle"
          autoCapitalize="none"
          autoComplete="off"
          autoCorrect="off"
          spellCheck={false}
        />
      )}
    </LabelledField>
  );
}

export function PasswordField({ isNew = false, name = "password" }: { isNew?: boolean; name?: string }) {
  const { t } = useTranslation();
  const label =
    name === "currentPassword" ? "local.currentPassword" : isNew ? "local.newPassword" : "local.password";
  return (
    <LabelledField
      label={t(label)}
      hint={isNew ? t("local.passwordHint") : undefined}
      error={useFieldError(name)}
    >
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
