/** The dialog that rotates a secret. The present secret stays valid for a time that is chosen here. */
import { useState } from "react";
import { FormDialog } from "../ui/dialogs/form-dialog";
import { SelectField } from "../ui/fields/select-field";
import { useTranslation } from "../ui/preferences";

const HOUR_S = 3_600;
/** The times for which the old secret may stay valid after a rotation. */
const GRACE_PERIODS_S = { none: 0, hour: HOUR_S, day: 24 * HOUR_S, week: 7 * 24 * HOUR_S } as const;
type GracePeriod = keyof typeof GRACE_PERIODS_S;
const GRACE_PERIODS = Object.keys(GRACE_PERIODS_S) as GracePeriod[];

interface Props {
  title: string;
  text: string;
  action: string;
  graceLabel: string;
  onClose: () => void;
  onRotate: (graceS: number) => Promise<void> | void;
}

export function RotateDialog({ title, text, action, graceLabel, onClose, onRotate }: Props) {
  const { t } = useTranslation();
  const [grace, setGrace] = useState<GracePeriod>("day");
  return (
    <FormDialog
      title={title}
      text={text}
      action={action}
      canSubmit
      submit={() => onRotate(GRACE_PERIODS_S[grace])}
      onClose={onClose}
    >
      <SelectField
        label={graceLabel}
        value={grace}
        values={GRACE_PERIODS}
        textOf={(each) => t(`keys.grace.${each}`)}
        onChange={setGrace}
      />
    </FormDialog>
  );
}
