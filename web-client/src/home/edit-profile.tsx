/** The button and the dialog with which the viewer changes name, handle and bio. */
import { useRef, useState } from "react";
import { request, useApi } from "../api/api";
import { LIMITS } from "../api/limits";
import { isHandle, typedHandle } from "../session/handles";
import { Button } from "../ui/button";
import { FormDialog } from "../ui/dialogs/form-dialog";
import { FormattingHelp } from "../ui/fields/formatting-help";
import { applyFormattingKey } from "../ui/fields/formatting-keys";
import { LabelledField } from "../ui/fields/labelled-field";
import { type LengthCheck, useLength } from "../ui/fields/length";
import { typedKey } from "../ui/fields/typed-key";
import { useTranslation } from "../ui/preferences";
import { notify } from "../ui/toasts";
import { ChangeHandle, UpdateProfile } from "./operations";
import { changedFields, handleRefusal, type ProfileTexts, type Refusal } from "./profile-changes";

interface Profile {
  name: string;
  handle: string;
  bio: string | null;
}

export function EditProfileButton({ user }: { user: Profile }) {
  const { t } = useTranslation();
  const [isOpen, setIsOpen] = useState(false);
  const { name, handle, bio } = user;
  return (
    <>
      <Button onClick={() => setIsOpen(true)}>{t("profile.edit")}</Button>
      {isOpen && <ProfileDialog stored={{ name, handle, bio: bio ?? "" }} onClose={() => setIsOpen(false)} />}
    </>
  );
}

function ProfileDialog({ stored, onClose }: { stored: ProfileTexts; onClose: () => void }) {
  const { t } = useTranslation();
  const [typed, setTyped] = useState(stored);
  const [refusal, setRefusal] = useState<Refusal | null>(null);
  const handleInput = useRef<HTMLInputElement>(null);
  const nameLength = useLength(typed.name.trim(), LIMITS.personName);
  const bioLength = useLength(typed.bio, LIMITS.bio);
  const save = useSave(stored, typed);
  const wished = typedHandle(typed.handle);
  const isHandleBad = wished !== stored.handle && !isHandle(wished);
  const hasLengths = typed.name.trim() !== "" && !nameLength.isTooLong && !bioLength.isTooLong;
  const isChanged = wished !== stored.handle || Object.keys(changedFields(stored, typed)).length > 0;
  const change = (texts: Partial<ProfileTexts>) => setTyped((before) => ({ ...before, ...texts }));

  async function submit() {
    const refused = await save();
    setRefusal(refused);
    if (refused) return handleInput.current?.focus();
    notify(t("profile.saved"));
    onClose();
  }

  return (
    <FormDialog
      title={t("profile.edit")}
      action={t("save")}
      canSubmit={isChanged && hasLengths && !isHandleBad}
      submit={submit}
      onClose={onClose}
    >
      <LabelledField label={t("local.name")} hint={t("local.nameHint")} length={nameLength}>
        {(props) => (
          <input
            {...props}
            className="field"
            autoComplete="name"
            required
            value={typed.name}
            onChange={({ target }) => change({ name: target.value })}
          />
        )}
      </LabelledField>
      <LabelledField
        label={t("local.handle")}
        hint={t("profile.handleHint")}
        error={isHandleBad ? t("local.badHandle") : refusal && t(refusal.textKey, refusal.values)}
      >
        {(props) => (
          <input
            {...props}
            ref={handleInput}
            className="field"
            autoCapitalize="none"
            autoComplete="off"
            autoCorrect="off"
            spellCheck={false}
            value={typed.handle}
            onChange={({ target }) => {
              change({ handle: target.value });
              setRefusal(null);
            }}
          />
        )}
      </LabelledField>
      <BioField bio={typed.bio} length={bioLength} setBio={(bio) => change({ bio })} />
    </FormDialog>
  );
}

/** Returns a function that stores what was changed. It returns why the handle was refused, and throws other errors. */
function useSave(stored: ProfileTexts, typed: ProfileTexts): () => Promise<Refusal | null> {
  const { cached } = useApi();
  const { language } = useTranslation();
  return async () => {
    const [handle, input] = [typedHandle(typed.handle), changedFields(stored, typed)];
    // The handle first, because only it is refused for reasons that the dialog can't know.
    if (handle !== stored.handle) {
      try {
        await request(cached, ChangeHandle, { handle });
      } catch (error) {
        const refusal = handleRefusal(error, language, new Date());
        if (refusal === null) throw error;
        return refusal;
      }
    }
    if (Object.keys(input).length > 0) await request(cached, UpdateProfile, { input });
    return null;
  };
}

function BioField(props: { bio: string; length: LengthCheck; setBio: (bio: string) => void }) {
  const { bio, length, setBio } = props;
  const { t } = useTranslation();
  return (
    <>
      <LabelledField label={t("bio.label")} hint={t("bio.hint")} length={length}>
        {(props) => (
          <textarea
            {...props}
            rows={5}
            className="field field-sizing-content max-h-60 min-h-32"
            value={bio}
            onChange={(event) => setBio(event.target.value)}
            onKeyDown={(event) => {
              if (applyFormattingKey(event)) event.preventDefault();
              if (typedKey(event) === "Enter" && (event.ctrlKey || event.metaKey))
                event.currentTarget.form?.requestSubmit();
            }}
          />
        )}
      </LabelledField>
      <div>
        <FormattingHelp />
      </div>
    </>
  );
}
