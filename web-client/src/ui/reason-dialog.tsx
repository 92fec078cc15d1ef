/** Asks for the reason of a manual change. The server stores the reason with the change. */
import { type FormEvent, useState } from "react";
import { LIMITS } from "../api/limits";
import { Button } from "./button";
import { Dialog } from "./dialog";
import { LabelledField } from "./labelled-field";
import { useLength } from "./length";
import { useTranslation } from "./preferences";

interface Props {
  title: string;
  text: string;
  action: string;
  isDestructive?: boolean;
  /** Called with the reason, or with null when the dialog is cancelled. */
  onDone: (reason: string | null) => void;
}

export function ReasonDialog({ title, text, action, isDestructive = false, onDone }: Props) {
  const { t } = useTranslation();
  const [reason, setReason] = useState("");
  const length = useLength(reason, LIMITS.reason);
  const canSubmit = reason.trim() !== "" && !length.isTooLong;
  function submit(event: FormEvent) {
    event.preventDefault();
    if (canSubmit) onDone(reason.trim());
  }
  return (
    <Dialog title={title} onClose={() => onDone(null)}>
      <form onSubmit={submit} className="flex flex-col gap-4">
        <p>{text}</p>
        <LabelledField label={t("reason")} hint={t("reason.hint")} note={length.note}>
          {(props) => (
            <input
              {...props}
              className="field"
              value={reason}
              onChange={(event) => setReason(event.target.value)}
              {...length.fieldProps}
            />
          )}
        </LabelledField>
        <div className="flex justify-end gap-2">
          <Button onClick={() => onDone(null)}>{t("cancel")}</Button>
          <Button type="submit" kind={isDestructive ? "bad" : "main"} disabled={!canSubmit}>
            {action}
          </Button>
        </div>
      </form>
    </Dialog>
  );
}
