/** Shows a secret that can't be read again, such as a service key, with a button that copies it. */
import { Button } from "../button";
import { LabelledField } from "../fields/labelled-field";
import { Icon } from "../icons";
import { useTranslation } from "../preferences";
import { notify } from "../toasts";
import { Dialog } from "./dialog";

interface Props {
  title: string;
  label: string;
  /** What to do with the secret, and that it is shown only now. */
  hint: string;
  secret: string;
  onClose: () => void;
}

export function SecretDialog({ title, label, hint, secret, onClose }: Props) {
  const { t } = useTranslation();
  const copy = () =>
    navigator.clipboard.writeText(secret).then(
      () => notify(t("secret.copied")),
      () => notify(t("secret.notCopied")),
    );
  return (
    <Dialog title={title} onClose={onClose}>
      <div className="flex flex-col gap-4">
        <LabelledField label={label} hint={hint}>
          {(props) => (
            <textarea
              {...props}
              readOnly
              rows={3}
              className="field resize-none break-all font-mono text-sm"
              value={secret}
              onFocus={(event) => event.currentTarget.select()}
            />
          )}
        </LabelledField>
        <div className="flex justify-end gap-2">
          <Button onClick={copy}>
            <Icon name="copy" className="size-4" />
            {t("secret.copy")}
          </Button>
          <Button kind="main" onClick={onClose}>
            {t("secret.done")}
          </Button>
        </div>
      </div>
    </Dialog>
  );
}
