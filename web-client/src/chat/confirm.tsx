/** Asks before something that can't be undone. */
import { Button } from "../ui/button";
import { Dialog } from "../ui/dialog";
import { useWords } from "../ui/preferences";

interface Props {
  title: string;
  text: string;
  action: string;
  onDone: (sure: boolean) => void;
}

export function Confirm({ title, text, action, onDone }: Props) {
  const { t } = useWords();
  return (
    <Dialog title={title} onClose={() => onDone(false)}>
      <p>{text}</p>
      <div className="mt-5 flex justify-end gap-2">
        <Button onClick={() => onDone(false)}>{t("cancel")}</Button>
        <Button kind="bad" onClick={() => onDone(true)}>
          {action}
        </Button>
      </div>
    </Dialog>
  );
}
