/** Asks the user to confirm an action. */
import { Button } from "../button";
import { useTranslation } from "../preferences";
import { Dialog } from "./dialog";

interface Props {
  title: string;
  text: string;
  action: string;
  /** Label of the button that changes nothing; "Cancel" by default. */
  keepLabel?: string;
  /** Appearance of the button that confirms; "bad" by default. */
  kind?: "bad" | "main";
  onDone: (isConfirmed: boolean) => void;
}

export function ConfirmDialog({ title, text, action, keepLabel, kind = "bad", onDone }: Props) {
  const { t } = useTranslation();
  return (
    <Dialog title={title} onClose={() => onDone(false)}>
      <p>{text}</p>
      <div className="mt-5 flex justify-end gap-2">
        <Button onClick={() => onDone(false)}>{keepLabel ?? t("cancel")}</Button>
        <Button kind={kind} onClick={() => onDone(true)}>
          {action}
        </Button>
      </div>
    </Dialog>
  );
}
