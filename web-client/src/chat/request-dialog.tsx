/** The dialog in which a person asks to join a community. */
import { type FormEvent, useState } from "react";
import { request, useApi } from "../api/api";
import { errorCode, failureTextKey } from "../api/failure";
import { LIMITS } from "../api/limits";
import { Button } from "../ui/button";
import { Dialog } from "../ui/dialog";
import { LabelledField } from "../ui/labelled-field";
import { useLength } from "../ui/length";
import { useTranslation } from "../ui/preferences";
import { notify } from "../ui/toasts";
import { RequestToJoin } from "./operations";

interface Props {
  community: { id: string; name: string };
  onClose: () => void;
}

export function RequestDialog({ community: { id, name }, onClose }: Props) {
  const { t } = useTranslation();
  const { cached } = useApi();
  const [message, setMessage] = useState("");
  const [errorText, setErrorText] = useState<string | null>(null);
  const length = useLength(message, LIMITS.joinRequest);

  async function send(event: FormEvent) {
    event.preventDefault();
    if (length.isTooLong) return;
    try {
      await request(cached, RequestToJoin, { id, message: message.trim() });
      notify(t("browse.asked", { name }));
      onClose();
    } catch (error) {
      setErrorText(errorCode(error) === "FORBIDDEN" ? t("topic.banned", { name }) : t(failureTextKey(error)));
    }
  }

  return (
    <Dialog title={t("browse.askNamed", { name })} onClose={onClose}>
      <form onSubmit={send} className="flex flex-col gap-4">
        <LabelledField label={t("browse.askMessage")} hint={t("browse.askMessageHint")} note={length.note}>
          {(props) => (
            <textarea
              {...props}
              className="field field-sizing-content max-h-52 min-h-20"
              value={message}
              onChange={(event) => setMessage(event.target.value)}
              {...length.fieldProps}
            />
          )}
        </LabelledField>
        {errorText && (
          <p role="alert" className="text-bad">
            {errorText}
          </p>
        )}
        <div className="flex justify-end gap-2">
          <Button onClick={onClose}>{t("cancel")}</Button>
          <Button type="submit" kind="main" disabled={length.isTooLong}>
            {t("browse.ask")}
          </Button>
        </div>
      </form>
    </Dialog>
  );
}
