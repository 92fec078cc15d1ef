/** The dialog in which a moderator sets the slow mode of a topic. */
import { useState } from "react";
import { request, useApi } from "../../api/api";
import { FormDialog } from "../../ui/dialogs/form-dialog";
import { SelectField } from "../../ui/fields/select-field";
import { useTranslation } from "../../ui/preferences";
import { notify } from "../../ui/toasts";
import { SetSlowMode } from "../operations";
import { durationText, SLOW_MODES_S } from "./slow-mode";

interface Props {
  topicId: string;
  seconds: number;
  onClose: () => void;
}

export function SlowModeDialog({ topicId, seconds, onClose }: Props) {
  const { t, language } = useTranslation();
  const { cached } = useApi();
  const [chosen, setChosen] = useState(seconds);
  const values = SLOW_MODES_S.some((each) => each === seconds) ? SLOW_MODES_S : [...SLOW_MODES_S, seconds];
  async function save() {
    await request(cached, SetSlowMode, { id: topicId, seconds: chosen });
    notify(t("slowMode.saved"));
    onClose();
  }
  return (
    <FormDialog
      title={t("slowMode")}
      text={t("slowMode.hint")}
      action={t("save")}
      canSubmit={chosen !== seconds}
      submit={save}
      onClose={onClose}
    >
      <SelectField<number>
        label={t("slowMode.wait")}
        value={chosen}
        values={values}
        textOf={(each) => (each === 0 ? t("slowMode.off") : durationText(language, each))}
        onChange={setChosen}
      />
    </FormDialog>
  );
}
