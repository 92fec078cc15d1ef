/** The dialog in which a person asks to join a community. */
import { useState } from "react";
import { request, useApi } from "../../api/api";
import { errorCode, restrictedUntil } from "../../api/failure";
import { LIMITS } from "../../api/limits";
import { FormDialog } from "../../ui/dialogs/form-dialog";
import { LabelledField } from "../../ui/fields/labelled-field";
import { useLength } from "../../ui/fields/length";
import { useTranslation } from "../../ui/preferences";
import { notify } from "../../ui/toasts";
import { RequestToJoin } from "../operations";

export interface OwnBan {
  /** When the ban ends; null if it lasts until a moderator ends it. */
  until: string | null;
}

interface Props {
  community: { id: string; name: string };
  onClose: () => void;
  /** Called instead of showing an error when the person turns out to be banned. */
  onBanned?: (ban: OwnBan) => void;
}

export function JoinRequestDialog({ community: { id, name }, onClose, onBanned }: Props) {
  const { t } = useTranslation();
  const { cached } = useApi();
  const [message, setMessage] = useState("");
  const length = useLength(message, LIMITS.joinRequest);

  async function send() {
    try {
      await request(cached, RequestToJoin, { id, message: message.trim() });
    } catch (error) {
      if (!onBanned || errorCode(error) !== "FORBIDDEN") throw error;
      return onBanned({ until: restrictedUntil(error) });
    }
    notify(t("browse.asked", { name }));
    onClose();
  }

  return (
    <FormDialog
      title={t("browse.askNamed", { name })}
      action={t("browse.ask")}
      canSubmit={!length.isTooLong}
      submit={send}
      errorTextOf={(error) => (errorCode(error) === "FORBIDDEN" ? t("topic.banned", { name }) : null)}
      onClose={onClose}
    >
      <LabelledField label={t("browse.askMessage")} hint={t("browse.askMessageHint")} length={length}>
        {(props) => (
          <textarea
            {...props}
            className="field field-sizing-content max-h-52 min-h-20"
            value={message}
            onChange={(event) => setMessage(event.target.value)}
          />
        )}
      </LabelledField>
    </FormDialog>
  );
}
