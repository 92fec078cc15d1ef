/** The dialogs of a moderator's acts on one person: mute, and ban with a reason. */
import { type FormEvent, type ReactNode, useState } from "react";
import { LIMITS } from "../api/limits";
import { Button } from "../ui/button";
import { Dialog } from "../ui/dialog";
import { LabelledField } from "../ui/labelled-field";
import { useLength } from "../ui/length";
import { useTranslation } from "../ui/preferences";
import { EndField } from "./end-field";
import { ENDS_OF_BANS, ENDS_OF_MUTES, type EndChoice, endOf } from "./ends";

interface MuteProps {
  name: string;
  /** Called with the end as an instant, or with null when the dialog is cancelled. */
  onDone: (until: string | null) => void;
}

export function MuteDialog({ name, onDone }: MuteProps) {
  const { t } = useTranslation();
  const [end, setEnd] = useState<EndChoice>({ name: "hour", local: "" });
  function submit() {
    const until = endOf(end, new Date());
    if (until instanceof Date) onDone(until.toISOString());
  }
  return (
    <ActDialog
      title={t("person.muteNamed", { name })}
      text={t("person.muteAsk")}
      action={t("person.doMute")}
      canSubmit={endOf(end, new Date()) !== null}
      submit={submit}
      onCancel={() => onDone(null)}
    >
      <EndField label={t("person.muteFor")} names={ENDS_OF_MUTES} value={end} onChange={setEnd} />
    </ActDialog>
  );
}

interface BanProps {
  name: string;
  /** Called with the reason and the end (null: it does not end), or with null when the dialog is cancelled. */
  onDone: (ban: { reason: string; until: string | null } | null) => void;
}

export function BanDialog({ name, onDone }: BanProps) {
  const { t } = useTranslation();
  const [reason, setReason] = useState("");
  const [end, setEnd] = useState<EndChoice>({ name: "never", local: "" });
  const length = useLength(reason, LIMITS.reason);
  const canSubmit = reason.trim() !== "" && !length.isTooLong && endOf(end, new Date()) !== null;
  function submit() {
    const until = endOf(end, new Date());
    if (until) onDone({ reason: reason.trim(), until: until === "never" ? null : until.toISOString() });
  }
  return (
    <ActDialog
      title={t("person.banNamed", { name })}
      text={t("person.banAsk")}
      action={t("person.doBan")}
      canSubmit={canSubmit}
      submit={submit}
      onCancel={() => onDone(null)}
    >
      <LabelledField label={t("reason")} hint={t("person.banReasonHint")} note={length.note}>
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
      <EndField label={t("person.banEnds")} names={ENDS_OF_BANS} value={end} onChange={setEnd} />
    </ActDialog>
  );
}

interface ActDialogProps {
  title: string;
  text: string;
  action: string;
  canSubmit: boolean;
  submit: () => void;
  onCancel: () => void;
  children: ReactNode;
}

function ActDialog({ title, text, action, canSubmit, submit, onCancel, children }: ActDialogProps) {
  const { t } = useTranslation();
  return (
    <Dialog title={title} onClose={onCancel}>
      <form
        className="flex flex-col gap-4"
        onSubmit={(event: FormEvent) => {
          event.preventDefault();
          if (canSubmit) submit();
        }}
      >
        <p>{text}</p>
        {children}
        <div className="flex justify-end gap-2">
          <Button onClick={onCancel}>{t("cancel")}</Button>
          <Button type="submit" kind="bad" disabled={!canSubmit}>
            {action}
          </Button>
        </div>
      </form>
    </Dialog>
  );
}
