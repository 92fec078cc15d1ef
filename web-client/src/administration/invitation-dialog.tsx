/** The dialog for a new invitation. */
import { type FormEvent, useState } from "react";
import { request, useApi } from "../api/api";
import { failureTextKey, rejectionText } from "../api/failure";
import { Button } from "../ui/button";
import { Dialog } from "../ui/dialog";
import { LabelledField } from "../ui/labelled-field";
import { useTranslation } from "../ui/preferences";
import { CreateInvitation } from "./invitation-operations";

const ROLES = ["MEMBER", "OPERATOR", "ADMIN"] as const;
const DAYS = [1, 7, 30, 90] as const;
const MAX_USES = 1_000;

interface Props {
  onClose: () => void;
  /** Called with the link, which can't be read again; null if the request was repeated. */
  onCreated: (url: string | null) => void;
}

export function InvitationDialog({ onClose, onCreated }: Props) {
  const { t, language } = useTranslation();
  const { direct } = useApi();
  const [idempotencyKey] = useState(() => crypto.randomUUID());
  const [email, setEmail] = useState("");
  const [role, setRole] = useState<(typeof ROLES)[number]>("MEMBER");
  const [uses, setUses] = useState("1");
  const [days, setDays] = useState<number>(7);
  const [isSaving, setIsSaving] = useState(false);
  const [errorText, setErrorText] = useState<string | null>(null);
  const maxUses = email.trim() ? 1 : Number(uses);
  const canCreate = Number.isInteger(maxUses) && maxUses >= 1 && maxUses <= MAX_USES && !isSaving;

  async function create(event: FormEvent) {
    event.preventDefault();
    if (!canCreate) return;
    setIsSaving(true);
    const input = {
      email: email.trim() || null,
      role,
      maxUses,
      expiresInHours: 24 * days,
      language: language === "ja" ? ("JA" as const) : ("EN" as const),
      idempotencyKey,
    };
    try {
      onCreated((await request(direct, CreateInvitation, { input })).createInvitation.url);
    } catch (error) {
      setErrorText(rejectionText(error) ?? t(failureTextKey(error)));
      setIsSaving(false);
    }
  }

  return (
    <Dialog title={t("invitations.new")} onClose={onClose}>
      <form onSubmit={create} className="flex flex-col gap-4">
        <LabelledField label={t("invitations.email")} hint={t("invitations.emailHint")}>
          {(props) => (
            <input
              {...props}
              type="email"
              className="field"
              autoComplete="off"
              value={email}
              onChange={(event) => setEmail(event.target.value)}
            />
          )}
        </LabelledField>
        <LabelledField label={t("admin.role")}>
          {(props) => (
            <select
              {...props}
              className="field"
              value={role}
              onChange={(event) => setRole(event.target.value as (typeof ROLES)[number])}
            >
              {ROLES.map((each) => (
                <option key={each} value={each}>
                  {t(`role.${each}`)}
                </option>
              ))}
            </select>
          )}
        </LabelledField>
        <div className="grid grid-cols-2 gap-3">
          <LabelledField label={t("invitations.maxUses")}>
            {(props) => (
              <input
                {...props}
                type="number"
                min={1}
                max={MAX_USES}
                className="field"
                disabled={email.trim() !== ""}
                value={email.trim() ? "1" : uses}
                onChange={(event) => setUses(event.target.value)}
              />
            )}
          </LabelledField>
          <LabelledField label={t("invitations.validFor")}>
            {(props) => (
              <select
                {...props}
                className="field"
                value={days}
                onChange={(event) => setDays(Number(event.target.value))}
              >
                {DAYS.map((each) => (
                  <option key={each} value={each}>
                    {t("invitations.days", { count: each })}
                  </option>
                ))}
              </select>
            )}
          </LabelledField>
        </div>
        {errorText && (
          <p role="alert" className="text-bad">
            {errorText}
          </p>
        )}
        <div className="flex justify-end gap-2">
          <Button onClick={onClose}>{t("cancel")}</Button>
          <Button type="submit" kind="main" disabled={!canCreate}>
            {t("invitations.create")}
          </Button>
        </div>
      </form>
    </Dialog>
  );
}
