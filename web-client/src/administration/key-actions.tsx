/** The actions on a service key: rotate, with a time for which the old secret stays valid, and revoke. */
import { type FormEvent, useState } from "react";
import { request, useApi } from "../api/api";
import { rejectionText } from "../api/failure";
import { ConfirmDialog } from "../chat/confirm";
import { Button } from "../ui/button";
import { Dialog } from "../ui/dialog";
import { LabelledField } from "../ui/labelled-field";
import { useTranslation } from "../ui/preferences";
import { notify, notifyFailure } from "../ui/toasts";
import type { IssuedKey } from "./key-list";
import { RevokeServiceKey, RotateServiceKey, type ServiceKey } from "./key-operations";

const HOUR_S = 3_600;
/** For how long the old secret may stay valid. */
const GRACES_S = { none: 0, hour: HOUR_S, day: 24 * HOUR_S, week: 7 * 24 * HOUR_S } as const;
type Grace = keyof typeof GRACES_S;

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
      const rejection = rejectionText(error);
      if (rejection) notify(rejection);
      else notifyFailure(error);
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

interface RotateProps {
  name: string;
  onClose: () => void;
  onRotate: (graceS: number) => void;
}

function RotateDialog({ name, onClose, onRotate }: RotateProps) {
  const { t } = useTranslation();
  const [grace, setGrace] = useState<Grace>("day");
  function submit(event: FormEvent) {
    event.preventDefault();
    onRotate(GRACES_S[grace]);
  }
  return (
    <Dialog title={t("keys.rotateNamed", { name })} onClose={onClose}>
      <form onSubmit={submit} className="flex flex-col gap-4">
        <p>{t("keys.rotateAsk")}</p>
        <LabelledField label={t("keys.grace")}>
          {(props) => (
            <select
              {...props}
              className="field"
              value={grace}
              onChange={(event) => setGrace(event.target.value as Grace)}
            >
              {(Object.keys(GRACES_S) as Grace[]).map((each) => (
                <option key={each} value={each}>
                  {t(`keys.grace.${each}`)}
                </option>
              ))}
            </select>
          )}
        </LabelledField>
        <div className="flex justify-end gap-2">
          <Button onClick={onClose}>{t("cancel")}</Button>
          <Button type="submit" kind="main">
            {t("keys.rotate")}
          </Button>
        </div>
      </form>
    </Dialog>
  );
}
