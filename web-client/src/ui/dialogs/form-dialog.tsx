/** A dialog with a form. It shows why the form could not be sent, and can't be sent twice at the same time. */
import { type FormEvent, type ReactNode, useState } from "react";
import { failureTextKey, rejectionText } from "../../api/failure";
import { Button } from "../button";
import { useTranslation } from "../preferences";
import { Dialog } from "./dialog";

interface Props {
  title: string;
  /** What the form does, above its fields. */
  text?: string;
  /** Label of the button that sends the form. */
  action: string;
  kind?: "main" | "bad";
  canSubmit: boolean;
  /** Sends the form. The text of an error is shown in the dialog, which stays open. */
  submit: () => Promise<void> | void;
  /** Returns the text of an error; null for the usual text. */
  errorTextOf?: (error: unknown) => string | null;
  onClose: () => void;
  children?: ReactNode;
}

export function FormDialog(props: Props) {
  const { title, text, action, kind = "main", canSubmit, submit, errorTextOf, onClose, children } = props;
  const { t } = useTranslation();
  const [isSending, setIsSending] = useState(false);
  const [errorText, setErrorText] = useState<string | null>(null);

  async function send(event: FormEvent) {
    event.preventDefault();
    if (!canSubmit || isSending) return;
    setIsSending(true);
    setErrorText(null);
    try {
      await submit();
    } catch (error) {
      setErrorText(errorTextOf?.(error) ?? rejectionText(error) ?? t(failureTextKey(error)));
    }
    setIsSending(false);
  }

  return (
    <Dialog title={title} onClose={onClose}>
      <form onSubmit={send} className="flex flex-col gap-4">
        {text && <p>{text}</p>}
        {children}
        {errorText && (
          <p role="alert" className="text-bad">
            {errorText}
          </p>
        )}
        <div className="flex flex-wrap justify-end gap-2">
          <Button onClick={onClose}>{t("cancel")}</Button>
          <Button type="submit" kind={kind} disabled={!canSubmit} isBusy={isSending}>
            {action}
          </Button>
        </div>
      </form>
    </Dialog>
  );
}
