/** The dialog in which a moderator decides a report. */
import { useState } from "react";
import { request, useApi } from "../api/api";
import { errorCode } from "../api/failure";
import { LIMITS } from "../api/limits";
import { ENDS_OF_BANS, endOf, type RestrictionEndChoice } from "../moderation/ends";
import { RestrictionEndField } from "../moderation/restriction-end-field";
import { FormDialog } from "../ui/dialogs/form-dialog";
import { LabelledField } from "../ui/fields/labelled-field";
import { useLength } from "../ui/fields/length";
import { RadioChoice } from "../ui/fields/radio-choice";
import { useTranslation } from "../ui/preferences";
import { notify } from "../ui/toasts";
import { decisionEffect } from "./decision-effect";
import { type ContentReport, DecideContentReport, type ReportDecision } from "./operations";

const DECISIONS: readonly ReportDecision[] = ["DISMISS", "REMOVE", "WARN", "BAN"];

interface Props {
  report: ContentReport;
  onClose: () => void;
  onDecided: () => void;
}

export function DecideReportDialog({ report, onClose, onDecided }: Props) {
  const { t } = useTranslation();
  const { direct } = useApi();
  const [decision, setDecision] = useState<ReportDecision>("DISMISS");
  const [note, setNote] = useState("");
  const [end, setEnd] = useState<RestrictionEndChoice>({ name: "never", local: "" });
  const length = useLength(note, LIMITS.reason);
  const hasEnd = decision === "BAN" && report.community !== null;
  const banEnd = hasEnd ? endOf(end, new Date()) : "never";
  const canDecide = note.trim() !== "" && !length.isTooLong && banEnd !== null;

  const effectOf = (each: ReportDecision) => decisionEffect(each, report.community !== null);

  async function decide() {
    const banUntil = banEnd instanceof Date ? banEnd.toISOString() : null;
    const variables = { id: report.id, decision, note: note.trim(), banUntil };
    const { decideContentReport: decided } = await request(direct, DecideContentReport, variables);
    notify(decided.failure ?? t("report.decidedNow"));
    onDecided();
  }

  return (
    <FormDialog
      title={t("report.decideTitle", { name: report.author.name })}
      action={t("report.decideNow")}
      kind={decision === "BAN" ? "bad" : "main"}
      canSubmit={canDecide}
      submit={decide}
      errorTextOf={(error) => (errorCode(error) === "CONFLICT" ? t("report.conflict") : null)}
      onClose={onClose}
    >
      <fieldset className="flex flex-col gap-1">
        <legend className="mb-1 text-sm font-medium">{t("report.decision")}</legend>
        {DECISIONS.filter((each) => each !== "REMOVE" || report.subject !== "USER").map((each) => (
          <RadioChoice
            key={each}
            group="decision"
            title={t(`report.decision.${effectOf(each)}`)}
            hint={t(`report.decision.${effectOf(each)}.hint`)}
            isChosen={decision === each}
            onChoose={() => setDecision(each)}
          />
        ))}
      </fieldset>
      {hasEnd && (
        <RestrictionEndField label={t("person.banEnds")} names={ENDS_OF_BANS} value={end} onChange={setEnd} />
      )}
      <LabelledField
        label={t(decision === "WARN" ? "report.warning" : "reason")}
        hint={t(decision === "WARN" ? "report.warningHint" : "report.noteHint")}
        length={length}
      >
        {(props) => (
          <textarea
            {...props}
            className="field field-sizing-content max-h-52 min-h-16"
            value={note}
            onChange={(event) => setNote(event.target.value)}
          />
        )}
      </LabelledField>
    </FormDialog>
  );
}
