/** The dialogs in which a moderator mutes a person, or bans a person with a reason. */
import { useState } from "react";
import { FormDialog } from "../ui/dialogs/form-dialog";
import { isReason, ReasonField } from "../ui/fields/reason-field";
import { useTranslation } from "../ui/preferences";
import { ENDS_OF_BANS, ENDS_OF_MUTES, endOf, type RestrictionEndChoice } from "./ends";
import { RestrictionEndField } from "./restriction-end-field";

interface MuteDialogProps {
  name: string;
  /** Called with the end as an instant, or with null when the dialog is cancelled. */
  onDone: (until: string | null) => void;
}

export function MuteDialog({ name, onDone }: MuteDialogProps) {
  const { t } = useTranslation();
  const [end, setEnd] = useState<RestrictionEndChoice>({ name: "hour", local: "" });
  function submit() {
    const until = endOf(end, new Date());
    if (until instanceof Date) onDone(until.toISOString());
  }
  return (
    <FormDialog
      title={t("person.muteNamed", { name })}
      text={t("person.muteAsk")}
      action={t("person.doMute")}
      canSubmit={endOf(end, new Date()) !== null}
      submit={submit}
      kind="bad"
      onClose={() => onDone(null)}
    >
      <RestrictionEndField label={t("person.muteFor")} names={ENDS_OF_MUTES} value={end} onChange={setEnd} />
    </FormDialog>
  );
}

interface BanDialogProps {
  name: string;
  /** Called with the reason and the end (null: it does not end), or with null when the dialog is cancelled. */
  onDone: (ban: { reason: string; until: string | null } | null) => void;
}

export function BanDialog({ name, onDone }: BanDialogProps) {
  const { t } = useTranslation();
  const [reason, setReason] = useState("");
  const [end, setEnd] = useState<RestrictionEndChoice>({ name: "never", local: "" });
  const canSubmit = isReason(reason) && endOf(end, new Date()) !== null;
  function submit() {
    const until = endOf(end, new Date());
    if (until) onDone({ reason: reason.trim(), until: until === "never" ? null : until.toISOString() });
  }
  return (
    <FormDialog
      title={t("person.banNamed", { name })}
      text={t("person.banAsk")}
      action={t("person.doBan")}
      canSubmit={canSubmit}
      submit={submit}
      kind="bad"
      onClose={() => onDone(null)}
    >
      <ReasonField hint={t("person.banReasonHint")} value={reason} onChange={setReason} />
      <RestrictionEndField label={t("person.banEnds")} names={ENDS_OF_BANS} value={end} onChange={setEnd} />
    </FormDialog>
  );
}
