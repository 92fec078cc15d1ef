/** The actions on a service key: rotate, with a time for which the old secret stays valid, and revoke. */
import { useState } from "react";
import { request, useApi } from "../../api/api";
import { Button } from "../../ui/button";
import { ConfirmDialog } from "../../ui/dialogs/confirm";
import { useTranslation } from "../../ui/preferences";
import { notify, notifyError } from "../../ui/toasts";
import { RotateDialog } from "../rotate-dialog";
import type { IssuedKey } from "./list";
import { RevokeServiceKey, RotateServiceKey, type ServiceKey } from "./operations";

interface Props {
  serviceKey: ServiceKey;
  replace: (changed: ServiceKey) => void;
  onIssued: (issued: IssuedKey) => void;
}

export function KeyActions({ serviceKey: { id, name }, replace, onIssued }: Props) {
  const { t } = useTranslation();
  const { direct } = useApi();
  const [openDialog, setOpenDialog] = useState<"rotate" | "revoke" | null>(null);

  async function run(change: () => Promise<void>) {
    setOpenDialog(null);
    try {
      await change();
    } catch (error) {
      notifyError(error);
    }
  }
  const rotate = (graceS: number) =>
    run(async () => {
      const input = { serviceKeyId: id, graceS, idempotencyKey: crypto.randomUUID() };
      onIssued((await request(direct, RotateServiceKey, { input })).rotateServiceKey);
    });
  const revoke = () =>
    run(async () => {
      replace((await request(direct, RevokeServiceKey, { id })).revokeServiceKey);
      notify(t("keys.revokedNow", { name }));
    });

  return (
    <div className="flex shrink-0 gap-2">
      <Button onClick={() => setOpenDialog("rotate")} aria-label={t("keys.rotateNamed", { name })}>
        {t("keys.rotate")}
      </Button>
      <Button onClick={() => setOpenDialog("revoke")} aria-label={t("keys.revokeNamed", { name })}>
        {t("keys.revoke")}
      </Button>
      {openDialog === "rotate" && (
        <RotateDialog
          title={t("keys.rotateNamed", { name })}
          text={t("keys.rotateAsk")}
          action={t("keys.rotate")}
          graceLabel={t("keys.grace")}
          onClose={() => setOpenDialog(null)}
          onRotate={rotate}
        />
      )}
      {openDialog === "revoke" && (
        <ConfirmDialog
          title={t("keys.revokeNamed", { name })}
          text={t("keys.revokeAsk")}
          action={t("keys.revoke")}
          onDone={(isConfirmed) => (isConfirmed ? revoke() : setOpenDialog(null))}
        />
      )}
    </div>
  );
}
