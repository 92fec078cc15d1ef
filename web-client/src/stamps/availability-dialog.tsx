/** The dialog in which an administrator decides who may use a pack of stamps. */
import { useId, useState } from "react";
import { request, useApi } from "../api/api";
import { FormDialog } from "../ui/dialogs/form-dialog";
import { LabelledField } from "../ui/fields/labelled-field";
import { RadioChoice } from "../ui/fields/radio-choice";
import { SelectField } from "../ui/fields/select-field";
import { useTranslation } from "../ui/preferences";
import {
  SetStampPackAvailability,
  type StampPack,
  type StampPackAvailability,
  type StampRule,
  type StampRuleKind,
} from "./operations";
import { isThreshold, maxThreshold } from "./threshold";

const AVAILABILITIES: readonly StampPackAvailability[] = ["EVERYONE", "EARNED", "GIVEN"];
const KINDS: readonly StampRuleKind[] = [
  "MESSAGES_POSTED",
  "POSTS_CREATED",
  "REACTIONS_RECEIVED",
  "MEMBER_DAYS",
];
const FIRST_RULE: StampRule = { kind: "MESSAGES_POSTED", threshold: 1 };

export function AvailabilityDialog({ pack, onClose }: { pack: StampPack; onClose: () => void }) {
  const { t } = useTranslation();
  const { cached } = useApi();
  const [availability, setAvailability] = useState(pack.availability);
  const [kind, setKind] = useState((pack.rule ?? FIRST_RULE).kind);
  const [threshold, setThreshold] = useState(String((pack.rule ?? FIRST_RULE).threshold));
  const group = useId();
  const isEarned = availability === "EARNED";
  async function save() {
    const rule = isEarned ? { kind, threshold: Number(threshold) } : null;
    await request(cached, SetStampPackAvailability, { packId: pack.id, availability, rule });
    onClose();
  }
  return (
    <FormDialog
      title={t("stamps.change", { name: pack.name })}
      action={t("save")}
      canSubmit={!isEarned || isThreshold(kind, threshold)}
      submit={save}
      onClose={onClose}
    >
      <fieldset className="flex flex-col gap-1">
        <legend className="mb-1 text-sm font-medium">{t("stamps.availability")}</legend>
        {AVAILABILITIES.map((each) => (
          <RadioChoice
            key={each}
            group={group}
            title={t(`stamps.availability.${each}`)}
            hint={t(`stamps.availability.${each}.hint`)}
            isChosen={availability === each}
            onChoose={() => setAvailability(each)}
          />
        ))}
      </fieldset>
      {isEarned && (
        <div className="flex flex-wrap gap-4">
          <SelectField
            label={t("stamps.rule")}
            className="grow"
            value={kind}
            values={KINDS}
            textOf={(each) => t(`stamps.rule.${each}`)}
            onChange={setKind}
          />
          <LabelledField
            label={t("stamps.threshold")}
            hint={t("stamps.thresholdHint", { max: maxThreshold(kind) })}
          >
            {(props) => (
              <input
                {...props}
                className="field w-28"
                inputMode="numeric"
                value={threshold}
                aria-invalid={!isThreshold(kind, threshold)}
                onChange={(event) => setThreshold(event.target.value)}
              />
            )}
          </LabelledField>
        </div>
      )}
    </FormDialog>
  );
}
