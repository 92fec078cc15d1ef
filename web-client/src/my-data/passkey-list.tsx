/** The passkeys of a person who has an account here: adding, renaming and removing them. */
import { useCallback, useEffect, useState } from "react";
import { request, useApi } from "../api/api";
import { errorCode } from "../api/failure";
import { LIMITS } from "../api/limits";
import { relativeTime, timeOrDate } from "../i18n/times";
import { accountFailureTextKey } from "../session/accounts/account-requests";
import { useNewPasskeyName } from "../session/accounts/passkey-sign-in";
import { addPasskey, supportsPasskeys } from "../session/accounts/passkeys";
import { Button } from "../ui/button";
import { ConfirmDialog } from "../ui/dialogs/confirm";
import { FormDialog } from "../ui/dialogs/form-dialog";
import { LabelledField } from "../ui/fields/labelled-field";
import { useLength } from "../ui/fields/length";
import { useTranslation } from "../ui/preferences";
import { notify, notifyFailure } from "../ui/toasts";
import { MyPasskeys, type Passkey, RemovePasskey, RenamePasskey } from "./operations";

const LOCAL_METHODS = ["PASSWORD", "PASSKEY"];

/**
 * Returns the passkeys, and a function that loads them again. The passkeys are null until they are loaded, and when the
 * viewer did not sign in with a password or a passkey.
 */
function usePasskeys() {
  const { direct } = useApi();
  const [passkeys, setPasskeys] = useState<readonly Passkey[] | null>(null);
  const load = useCallback(async () => {
    const { myPasskeys, mySessions } = await request(direct, MyPasskeys, {});
    const isLocal = mySessions.some(({ current, method }) => current && LOCAL_METHODS.includes(method));
    setPasskeys(isLocal ? myPasskeys : null);
  }, [direct]);
  useEffect(() => {
    load().catch(notifyFailure);
  }, [load]);
  return { passkeys, load };
}

export function PasskeyList() {
  const { t } = useTranslation();
  const { passkeys, load } = usePasskeys();
  const name = useNewPasskeyName();
  const [isAdding, setIsAdding] = useState(false);
  if (passkeys === null) return null;

  async function add() {
    setIsAdding(true);
    try {
      await addPasskey(name);
      await load();
      notify(t("passkeys.added"));
    } catch (error) {
      notify(t(accountFailureTextKey(error)));
    } finally {
      setIsAdding(false);
    }
  }
  return (
    <section aria-labelledby="passkeys" className="mb-10">
      <div className="flex flex-wrap items-center justify-between gap-2 border-b border-line pb-3">
        <div className="min-w-0">
          <h2 id="passkeys" className="text-lg font-semibold">
            {t("passkeys.title")}
          </h2>
          <p className="text-sm text-quiet">{t("passkeys.hint")}</p>
        </div>
        {supportsPasskeys() && (
          <Button isBusy={isAdding} onClick={add}>
            {t("passkeys.add")}
          </Button>
        )}
      </div>
      {passkeys.length === 0 && <p className="py-3 text-quiet">{t("passkeys.none")}</p>}
      <ul aria-label={t("passkeys.title")}>
        {passkeys.map((passkey) => (
          <PasskeyRow key={passkey.id} passkey={passkey} onChange={load} />
        ))}
      </ul>
    </section>
  );
}

function PasskeyRow({ passkey, onChange }: { passkey: Passkey; onChange: () => Promise<void> }) {
  const { t, language } = useTranslation();
  const [dialog, setDialog] = useState<"rename" | "remove" | null>(null);
  const { direct } = useApi();
  const { id, name, synced, createdAt, lastUsedAt } = passkey;
  const now = new Date();
  const texts = [
    t(synced ? "passkeys.synced" : "passkeys.device"),
    t("passkeys.created", { time: timeOrDate(language, new Date(createdAt), now) }),
    lastUsedAt
      ? t("passkeys.used", { time: relativeTime(language, new Date(lastUsedAt), now) })
      : t("passkeys.unused"),
  ];

  async function remove(isConfirmed: boolean) {
    setDialog(null);
    if (!isConfirmed) return;
    try {
      await request(direct, RemovePasskey, { id });
      notify(t("passkeys.removed", { name }));
    } catch (error) {
      if (errorCode(error) === "CONFLICT") return notify(t("passkeys.last"));
      // A passkey that is not found was removed before.
      if (errorCode(error) !== "NOT_FOUND") return notifyFailure(error);
    }
    await onChange().catch(notifyFailure);
  }
  return (
    <li
      data-passkey={id}
      className="flex flex-wrap items-center gap-2 border-b border-line py-3 sm:flex-nowrap"
    >
      <div className="min-w-0 grow">
        <p className="break-words font-semibold">{name}</p>
        <p className="text-sm text-quiet">{texts.join(" · ")}</p>
      </div>
      <Button onClick={() => setDialog("rename")} aria-label={t("passkeys.renameNamed", { name })}>
        {t("passkeys.rename")}
      </Button>
      <Button onClick={() => setDialog("remove")} aria-label={t("passkeys.removeNamed", { name })}>
        {t("passkeys.remove")}
      </Button>
      {dialog === "rename" && (
        <RenamePasskeyDialog passkey={passkey} onChange={onChange} onClose={() => setDialog(null)} />
      )}
      {dialog === "remove" && (
        <ConfirmDialog
          title={t("passkeys.removeNamed", { name })}
          text={t("passkeys.removeAsk")}
          action={t("passkeys.remove")}
          onDone={remove}
        />
      )}
    </li>
  );
}

interface RenameDialogProps {
  passkey: Passkey;
  onChange: () => Promise<void>;
  onClose: () => void;
}

function RenamePasskeyDialog({ passkey, onChange, onClose }: RenameDialogProps) {
  const { t } = useTranslation();
  const { direct } = useApi();
  const [name, setName] = useState(passkey.name);
  const length = useLength(name, LIMITS.passkeyName);
  return (
    <FormDialog
      title={t("passkeys.renameNamed", { name: passkey.name })}
      action={t("save")}
      canSubmit={name.trim() !== "" && !length.isTooLong}
      submit={async () => {
        await request(direct, RenamePasskey, { id: passkey.id, name });
        await onChange();
        onClose();
      }}
      onClose={onClose}
    >
      <LabelledField label={t("passkeys.name")} length={length}>
        {(props) => (
          <input
            {...props}
            className="field"
            value={name}
            onChange={(event) => setName(event.target.value)}
          />
        )}
      </LabelledField>
    </FormDialog>
  );
}
