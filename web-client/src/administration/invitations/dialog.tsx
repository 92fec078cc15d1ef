/** The dialog for a new invitation. */
import { useState } from "react";
import { request, useApi } from "../../api/api";
import { FormDialog } from "../../ui/dialogs/form-dialog";
import { LabelledField } from "../../ui/fields/labelled-field";
import { SelectField } from "../../ui/fields/select-field";
import { useTranslation } from "../../ui/preferences";
import { InvitedCommunityField } from "./invited-community";
import { CreateInvitation } from "./operations";

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
  const [communityId, setCommunityId] = useState<string | null>(null);
  const [uses, setUses] = useState("1");
  const [days, setDays] = useState<number>(7);
  const maxUses = email.trim() ? 1 : Number(uses);
  const canCreate = Number.isInteger(maxUses) && maxUses >= 1 && maxUses <= MAX_USES;

  async function create() {
    const input = {
      email: email.trim() || null,
      role,
      communityId,
      maxUses,
      expiresInHours: 24 * days,
      language: language === "ja" ? ("JA" as const) : ("EN" as const),
      idempotencyKey,
    };
    onCreated((await request(direct, CreateInvitation, { input })).createInvitation.url);
  }

  return (
    <FormDialog
      title={t("invitations.new")}
      action={t("invitations.create")}
      canSubmit={canCreate}
      submit={create}
      onClose={onClose}
    >
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
      <SelectField
        label={t("admin.role")}
        value={role}
        values={ROLES}
        textOf={(each) => t(`role.${each}`)}
        onChange={setRole}
      />
      <InvitedCommunityField communityId={communityId} onChange={setCommunityId} />
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
        <SelectField
          label={t("invitations.validFor")}
          value={days}
          values={DAYS}
          textOf={(count) => t("invitations.days", { count })}
          onChange={setDays}
        />
      </div>
    </FormDialog>
  );
}
