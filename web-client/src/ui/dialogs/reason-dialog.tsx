/** Asks for the reason of a manual change. The server stores the reason with the change. */
import { useState } from "react";
import { isReason, ReasonField } from "../fields/reason-field";
import { useTranslation } from "../preferences";
import { FormDialog } from "./form-dialog";

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
  return (
    <FormDialog
      title={title}
      text={text}
      action={action}
      kind={isDestructive ? "bad" : "main"}
      canSubmit={isReason(reason)}
      submit={() => onDone(reason.trim())}
      onClose={() => onDone(null)}
    >
      <ReasonField hint={t("reason.hint")} value={reason} onChange={setReason} />
    </FormDialog>
  );
}
