/** The dialog before a person is erased. The handle is typed, so that nobody is erased by mistake. */
import { useState } from "react";
import { request, useApi } from "../api/api";
import { FormDialog } from "../ui/dialogs/form-dialog";
import { LabelledField } from "../ui/fields/labelled-field";
import { useTranslation } from "../ui/preferences";
import { isHandleOf } from "./handle";
import { EraseUser } from "./operations";

interface Props {
  user: { id: string; name: string; handle: string };
  title: string;
  text: string;
  action: string;
  onClose: () => void;
  /** Called when the server has accepted the request. */
  onErased: () => void;
}

export function EraseDialog({ user: { id, handle }, title, text, action, onClose, onErased }: Props) {
  const { t } = useTranslation();
  const { direct } = useApi();
  const [typed, setTyped] = useState("");
  async function erase() {
    await request(direct, EraseUser, { id, handle: typed.trim() });
    onErased();
  }
  return (
    <FormDialog
      title={title}
      text={text}
      action={action}
      kind="bad"
      canSubmit={isHandleOf(typed, handle)}
      submit={erase}
      onClose={onClose}
    >
      <LabelledField label={t("erase.handle", { handle })}>
        {(props) => (
          <input
            {...props}
            className="field"
            autoComplete="off"
            autoCapitalize="none"
            spellCheck={false}
            value={typed}
            onChange={(event) => setTyped(event.target.value)}
          />
        )}
      </LabelledField>
    </FormDialog>
  );
}
