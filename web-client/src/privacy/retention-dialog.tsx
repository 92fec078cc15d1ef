/** The dialog in which an administrator chooses how long a kind of data is kept. */
import { useState } from "react";
import { request, useApi } from "../api/api";
import { FormDialog } from "../ui/dialogs/form-dialog";
import { LabelledField } from "../ui/fields/labelled-field";
import { useTranslation } from "../ui/preferences";
import { notify } from "../ui/toasts";
import { daysOf, isShorter } from "./retention-days";
import { type RetentionRule, SetRetentionRule } from "./retention-operations";
import { useLifetimeText } from "./use-lifetime-text";

interface Props {
  rule: RetentionRule;
  onClose: () => void;
  onChanged: (changed: RetentionRule) => void;
}

export function RetentionDialog({ rule, onClose, onChanged }: Props) {
  const { t } = useTranslation();
  const { direct } = useApi();
  const lifetimeText = useLifetimeText();
  const { data, defaultDays, minDays, maxDays } = rule;
  const name = t(`retention.${data}`);
  const [text, setText] = useState(rule.setAt === null ? "" : String(rule.days ?? ""));
  const days = daysOf(text, rule);
  const isRemoving = days !== undefined && isShorter(days ?? defaultDays, rule.days);

  async function save() {
    const { setRetentionRule: changed } = await request(direct, SetRetentionRule, {
      data,
      days: days ?? null,
    });
    notify(t("retention.saved", { name, lifetime: lifetimeText(changed.days) }));
    onChanged(changed);
  }

  return (
    <FormDialog
      title={name}
      text={t(`retention.${data}.hint`)}
      action={t(isRemoving ? "retention.remove" : "save")}
      kind={isRemoving ? "bad" : "main"}
      canSubmit={days !== undefined}
      submit={save}
      onClose={onClose}
    >
      <LabelledField
        label={t("retention.days")}
        hint={t("retention.range", { min: minDays, max: maxDays, lifetime: lifetimeText(defaultDays) })}
      >
        {(props) => (
          <input
            {...props}
            inputMode="numeric"
            autoComplete="off"
            className="field"
            {...(days === undefined && { "aria-invalid": true })}
            value={text}
            onChange={(event) => setText(event.target.value)}
          />
        )}
      </LabelledField>
      <p role="status" className="text-sm text-bad empty:hidden">
        {isRemoving && t("retention.shorter")}
      </p>
    </FormDialog>
  );
}
