/** The actions on a service key: rotate, with a time for which the old secret stays valid, and revoke. */
import { useState } from "react";
import { request, useApi } from "../../api/api";
import { Button } from "../../ui/button";
import { ConfirmDialog } from "../../ui/dialogs/confirm";
import { FormDialog } from "../../ui/dialogs/form-dialog";
import { SelectField } from "../../ui/fields/select-field";
import { useTranslation } from "../../ui/preferences";
import { notify, notifyError } from "../../ui/toasts";
import type { IssuedKey } from "./list";
import { RevokeServiceKey, RotateServiceKey, type ServiceKey } from "./operations";

const HOUR_S = 3_600;
/** The times for which the old secret may stay valid after a rotation. */
const GRACE_PERIODS_S = { none: 0, hour: HOUR_S, day: 24 * HOUR_S, week: 7 * 24 * HOUR_S } as const;
type GracePeriod = keyof typeof GRACE_PERIODS_S;
const GRACE_PERIODS = Object.keys(GRACE_PERIODS_S) as GracePeriod[];

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
        <RotateDialog name={name} onClose={() => setOpenDialog(null)} onRotate={rotate} />
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

interface RotateDialogProps {
  name: string;
  onClose: () => void;
  onRotate: (graceS: number) => void;
}

function RotateDialog({ name, onClose, onRotate }: RotateDialogProps) {
  const { t } = useTranslation();
  const [grace, setGrace] = useState<GracePeriod>("day");
  return (
    <FormDialog
      title={t("keys.rotateNamed", { name })}
      text={t("keys.rotateAsk")}
      action={t("keys.rotate")}
      canSubmit
      submit={() => onRotate(GRACE_PERIODS_S[grace])}
      onClose={onClose}
    >
      <SelectField
        label={t("keys.grace")}
        value={grace}
        values={GRACE_PERIODS}
        textOf={(each) => t(`keys.grace.${each}`)}
        onChange={setGrace}
      />
    </FormDialog>
  );
}
