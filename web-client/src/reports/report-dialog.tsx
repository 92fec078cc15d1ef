/** The dialog in which a person reports a message, a post or another person. */
import { useState } from "react";
import { request, useApi } from "../api/api";
import { LIMITS } from "../api/limits";
import type { TextKey } from "../i18n/texts";
import { FormDialog } from "../ui/dialogs/form-dialog";
import { LabelledField } from "../ui/fields/labelled-field";
import { useLength } from "../ui/fields/length";
import { SelectField } from "../ui/fields/select-field";
import { useTranslation } from "../ui/preferences";
import { notify } from "../ui/toasts";
import { type ReportCategory, ReportContent, type ReportSubject } from "./operations";

const CATEGORIES: readonly ReportCategory[] = [
  "SPAM",
  "HARASSMENT",
  "HATE",
  "VIOLENCE",
  "SEXUAL",
  "SELF_HARM",
  "PRIVACY",
  "OTHER",
];

interface Props {
  subject: ReportSubject;
  id: string;
  /** Name of the person who is reported, or who wrote the reported message or post. */
  name: string;
  /** Whether moderators of a community decide about the report, and not the administrators of the organization. */
  isForModerators?: boolean;
  onClose: () => void;
}

/** Returns the text that says who decides about the report, and what they see. */
function hintKey(subject: ReportSubject, isForModerators: boolean): TextKey {
  if (isForModerators) return "report.hintCommunity";
  return subject === "MESSAGE" ? "report.hintConversation" : "report.hintAdmins";
}

export function ReportDialog({ subject, id, name, isForModerators = false, onClose }: Props) {
  const { t } = useTranslation();
  const { direct } = useApi();
  const [category, setCategory] = useState<ReportCategory | null>(null);
  const [text, setText] = useState("");
  const length = useLength(text, LIMITS.report);

  async function send() {
    if (category === null) return;
    await request(direct, ReportContent, { subject, id, category, text: text.trim() });
    notify(t("report.sent"));
    onClose();
  }

  return (
    <FormDialog
      title={t(`report.title.${subject}`, { name })}
      text={t(hintKey(subject, isForModerators))}
      action={t("report.send")}
      canSubmit={category !== null && !length.isTooLong}
      submit={send}
      onClose={onClose}
    >
      <SelectField
        label={t("report.category")}
        value={category}
        values={CATEGORIES}
        textOf={(each) => t(`report.category.${each}`)}
        emptyText={t("report.choose")}
        onChange={setCategory}
      />
      <LabelledField label={t("report.text")} length={length}>
        {(props) => (
          <textarea
            {...props}
            className="field field-sizing-content max-h-52 min-h-20"
            value={text}
            onChange={(event) => setText(event.target.value)}
          />
        )}
      </LabelledField>
    </FormDialog>
  );
}
