/** The dialog in which an administrator signs a user out: of all browsers, or of one. */
import { useCallback, useState } from "react";
import { request, useApi } from "../api/api";
import { errorCode } from "../api/failure";
import type { Session } from "../session/browsers/session-parts";
import { sessionTexts } from "../session/browsers/session-texts";
import { usePagedList } from "../timeline/use-paged-list";
import { FormDialog } from "../ui/dialogs/form-dialog";
import { RadioChoice } from "../ui/fields/radio-choice";
import { isReason, ReasonField } from "../ui/fields/reason-field";
import { PagedRows } from "../ui/paged-rows";
import { useTranslation } from "../ui/preferences";
import { notify } from "../ui/toasts";
import { type AdministeredUser, EndUserSessions, UserSessions } from "./operations";

const keyOf = ({ id }: Session) => id;

interface Props {
  user: AdministeredUser;
  onClose: () => void;
}

export function SignOutDialog({ user: { id, name }, onClose }: Props) {
  const { t } = useTranslation();
  const { direct } = useApi();
  const [reason, setReason] = useState("");
  const [sessionId, setSessionId] = useState<string | null>(null);

  async function signOut() {
    const variables = { id, sessionId, reason: reason.trim() };
    const { endUserSessions: count } = await request(direct, EndUserSessions, variables);
    onClose();
    notify(t("sessions.ended", { count }));
  }

  return (
    <FormDialog
      title={t("admin.signOutNamed", { name })}
      text={t("admin.signOutAsk")}
      action={t("signOut")}
      canSubmit={isReason(reason)}
      submit={signOut}
      errorTextOf={(error) => (errorCode(error) === "NOT_FOUND" ? t("admin.signOutEnded") : null)}
      onClose={onClose}
    >
      <BrowserField userId={id} value={sessionId} onChange={setSessionId} />
      <ReasonField hint={t("reason.hint")} value={reason} onChange={setReason} />
    </FormDialog>
  );
}

interface BrowserFieldProps {
  userId: string;
  /** Id of the chosen session; null for all sessions. */
  value: string | null;
  onChange: (sessionId: string | null) => void;
}

function BrowserField({ userId, value, onChange }: BrowserFieldProps) {
  const translation = useTranslation();
  const { t } = translation;
  const { direct } = useApi();
  // The API lists all sessions at once: a user has a few.
  const loadAll = useCallback(
    async (after: Session | null) =>
      after ? [] : (await request(direct, UserSessions, { userId })).userSessions,
    [direct, userId],
  );
  const sessions = usePagedList(loadAll, keyOf);
  return (
    <fieldset className="flex flex-col gap-1">
      <legend className="mb-1 text-sm font-medium">{t("sessions.title")}</legend>
      <RadioChoice
        group="browser"
        title={t("admin.signOutAll")}
        isChosen={value === null}
        onChoose={() => onChange(null)}
      />
      <PagedRows
        list={sessions}
        label={t("sessions.title")}
        empty={<p className="px-2 text-sm text-quiet">{t("sessions.none")}</p>}
      >
        {(session) => {
          const { name, lastUse, signIn } = sessionTexts(translation, session);
          return (
            <li key={session.id}>
              <RadioChoice
                group="browser"
                title={name}
                hint={`${lastUse} · ${signIn}`}
                isChosen={value === session.id}
                onChoose={() => onChange(session.id)}
              />
            </li>
          );
        }}
      </PagedRows>
    </fieldset>
  );
}
