/** Asks for confirmation before something that can't be undone. */
import { Button } from "../ui/button";
import { Dialog } from "../ui/dialog";
import { useTranslation } from "../ui/preferences";

interface Props {
  title: string;
  text: string;
  action: string;
  /** Label of the button that changes nothing; "Cancel" by default. */
  keep?: string;
  onDone: (sure: boolean) => void;
}

export function Confirm({ title, text, action, keep, onDone }: Props) {
  const { t } = useTranslation();
  return (
    <Dialog title={title} onClose={() => onDone(false)}>
      <p>{text}</p>
      <div className="mt-5 flex justify-end gap-2">
        <Button onClick={() => onDone(false)}>{keep ?? t("cancel")}</Button>
        <Button kind="bad" onClick={() => onDone(true)}>
          {action}
        </Button>
      </div>
    </Dialog>
  );
}
