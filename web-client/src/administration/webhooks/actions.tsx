/** The actions on a webhook: edit, test, replay, rotate the secret, disable or enable, and delete. */
import { useState } from "react";
import { request, useApi } from "../../api/api";
import { Button } from "../../ui/button";
import { ConfirmDialog } from "../../ui/dialogs/confirm";
import { useTranslation } from "../../ui/preferences";
import { notify, notifyError } from "../../ui/toasts";
import { RotateDialog } from "../rotate-dialog";
import { WebhookDialog } from "./dialog";
import {
  DeleteWebhook,
  DisableWebhook,
  EnableWebhook,
  RotateWebhookSecret,
  TestWebhook,
  type Webhook,
  type WebhookDelivery,
} from "./operations";
import { ReplayDialog } from "./replay-dialog";
import type { WebhookChanges } from "./screen";
import { isOver } from "./state";

interface Props {
  webhook: Webhook;
  changes: WebhookChanges;
  onDeleted: () => void;
  onRequested: (delivery: WebhookDelivery) => void;
}

type OpenDialog = "edit" | "replay" | "rotate" | "delete";

export function WebhookActions(props: Props) {
  const { webhook, onDeleted, onRequested } = props;
  const { t } = useTranslation();
  const { direct } = useApi();
  const [openDialog, setOpenDialog] = useState<OpenDialog | null>(null);
  const [isBusy, setIsBusy] = useState(false);
  const { id, name, disabledAt } = webhook;

  async function run(change: () => Promise<void>) {
    setIsBusy(true);
    await change().catch(notifyError);
    setIsBusy(false);
  }
  const test = () => run(async () => onRequested((await request(direct, TestWebhook, { id })).testWebhook));
  const toggle = () =>
    run(async () => {
      if (disabledAt) props.changes.put((await request(direct, EnableWebhook, { id })).enableWebhook);
      else props.changes.put((await request(direct, DisableWebhook, { id })).disableWebhook);
      notify(t(disabledAt ? "webhooks.enabledNow" : "webhooks.disabledNow", { name }));
    });
  const remove = () =>
    run(async () => {
      await request(direct, DeleteWebhook, { id });
      notify(t("webhooks.deleted", { name }));
      onDeleted();
    });

  return (
    <div className="mt-3 flex flex-wrap gap-2">
      <Button isBusy={isBusy} onClick={test}>
        {t("webhooks.sendTest")}
      </Button>
      <Button onClick={() => setOpenDialog("edit")}>{t("webhooks.edit")}</Button>
      <Button onClick={() => setOpenDialog("rotate")}>{t("webhooks.rotate")}</Button>
      {!isOver(webhook) && (
        <Button isBusy={isBusy} onClick={toggle}>
          {t(disabledAt ? "webhooks.enable" : "webhooks.disable")}
        </Button>
      )}
      {!disabledAt && <Button onClick={() => setOpenDialog("replay")}>{t("webhooks.replay")}</Button>}
      <Button onClick={() => setOpenDialog("delete")}>{t("webhooks.deleteDots")}</Button>
      {openDialog === "delete" ? (
        <ConfirmDialog
          title={t("webhooks.deleteNamed", { name })}
          text={t("webhooks.deleteAsk")}
          action={t("webhooks.delete")}
          onDone={(isConfirmed) => {
            setOpenDialog(null);
            if (isConfirmed) void remove();
          }}
        />
      ) : (
        openDialog && <ChangeDialog {...props} dialog={openDialog} onClose={() => setOpenDialog(null)} />
      )}
    </div>
  );
}

interface ChangeDialogProps {
  dialog: Exclude<OpenDialog, "delete">;
  webhook: Webhook;
  changes: WebhookChanges;
  onClose: () => void;
}

function ChangeDialog({ dialog, webhook, changes, onClose }: ChangeDialogProps) {
  const { t } = useTranslation();
  const { direct } = useApi();
  const { id, name } = webhook;

  async function rotate(graceS: number) {
    const input = { webhookId: id, graceS, idempotencyKey: crypto.randomUUID() };
    const issued = (await request(direct, RotateWebhookSecret, { input })).rotateWebhookSecret;
    onClose();
    changes.putIssued(issued);
  }

  if (dialog === "edit")
    return (
      <WebhookDialog
        webhook={webhook}
        onClose={onClose}
        onSaved={(saved) => {
          onClose();
          changes.put(saved.webhook);
          notify(t("webhooks.saved", { name: saved.webhook.name }));
        }}
      />
    );
  if (dialog === "replay") return <ReplayDialog webhook={webhook} changes={changes} onClose={onClose} />;
  return (
    <RotateDialog
      title={t("webhooks.rotateNamed", { name })}
      text={t("webhooks.rotateAsk")}
      action={t("webhooks.rotateNow")}
      graceLabel={t("webhooks.grace")}
      onClose={onClose}
      onRotate={rotate}
    />
  );
}
