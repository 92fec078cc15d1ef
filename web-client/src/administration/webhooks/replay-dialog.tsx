/** The dialog that sends events of a webhook again, since a moment. */
import { useState } from "react";
import { request, useApi } from "../../api/api";
import { rejectionOf } from "../../publishing/posts/rejections";
import { FormDialog } from "../../ui/dialogs/form-dialog";
import { LabelledField } from "../../ui/fields/labelled-field";
import { useTranslation } from "../../ui/preferences";
import { notify } from "../../ui/toasts";
import { ReplayWebhook, type Webhook } from "./operations";
import { fieldValueOf, instantOf } from "./replay-time";
import type { WebhookChanges } from "./screen";

const HOUR_MS = 3_600_000;

interface Props {
  webhook: Webhook;
  changes: WebhookChanges;
  onClose: () => void;
}

export function ReplayDialog({ webhook, changes, onClose }: Props) {
  const { t } = useTranslation();
  const { direct } = useApi();
  const [value, setValue] = useState(() => fieldValueOf(new Date(Date.now() - HOUR_MS)));
  const [expected, setExpected] = useState<string | null>(null);
  const since = instantOf(value);

  async function replay() {
    setExpected(null);
    try {
      const input = { webhookId: webhook.id, since };
      changes.put((await request(direct, ReplayWebhook, { input })).replayWebhook);
      notify(t("webhooks.replayed"));
      onClose();
    } catch (error) {
      const rejection = rejectionOf(error);
      if (rejection?.field !== "since") throw error;
      setExpected(rejection.expected);
    }
  }

  return (
    <FormDialog
      title={t("webhooks.replayNamed", { name: webhook.name })}
      text={t("webhooks.replayAsk")}
      action={t("webhooks.replayNow")}
      canSubmit={since !== null}
      submit={replay}
      onClose={onClose}
    >
      <LabelledField
        label={t("webhooks.replaySince")}
        error={expected === null ? null : t("webhooks.expected", { expected })}
      >
        {(props) => (
          <input
            {...props}
            type="datetime-local"
            className="field"
            value={value}
            onChange={(event) => setValue(event.target.value)}
          />
        )}
      </LabelledField>
    </FormDialog>
  );
}
