/** What a person writes about themselves, and the dialog in which the viewer changes it. */
import { useState } from "react";
import { request, useApi } from "../api/api";
import { graphql } from "../api/graphql";
import { LIMITS } from "../api/limits";
import { Button } from "../ui/button";
import { FormDialog } from "../ui/dialogs/form-dialog";
import { FormattingHelp } from "../ui/fields/formatting-help";
import { applyFormattingKey } from "../ui/fields/formatting-keys";
import { LabelledField } from "../ui/fields/labelled-field";
import { useLength } from "../ui/fields/length";
import { typedKey } from "../ui/fields/typed-key";
import { useTranslation } from "../ui/preferences";
import { RichText } from "../ui/text/rich-text";
import { notify } from "../ui/toasts";

const UpdateProfile = graphql(
  `mutation UpdateProfile($bio: String!) { updateProfile(input: { bio: $bio }) { id bio } }`,
);

export function Bio({ text }: { text: string }) {
  return (
    <div data-bio className="w-full max-w-prose break-words">
      <RichText text={text} mentions={[]} />
    </div>
  );
}

/** The button with which the viewer writes or changes the bio. */
export function BioButton({ bio }: { bio: string | null }) {
  const { t } = useTranslation();
  const [isOpen, setIsOpen] = useState(false);
  return (
    <>
      <Button onClick={() => setIsOpen(true)}>{t(bio === null ? "bio.add" : "bio.edit")}</Button>
      {isOpen && <BioDialog bio={bio ?? ""} onClose={() => setIsOpen(false)} />}
    </>
  );
}

function BioDialog({ bio, onClose }: { bio: string; onClose: () => void }) {
  const { t } = useTranslation();
  const { cached } = useApi();
  const [text, setText] = useState(bio);
  const length = useLength(text, LIMITS.bio);
  const canSave = text.trim() !== bio && !length.isTooLong;
  async function save() {
    await request(cached, UpdateProfile, { bio: text.trim() });
    notify(t("bio.saved"));
    onClose();
  }
  return (
    <FormDialog title={t("bio.title")} action={t("save")} canSubmit={canSave} submit={save} onClose={onClose}>
      <LabelledField label={t("bio.label")} hint={t("bio.hint")} length={length}>
        {(props) => (
          <textarea
            {...props}
            rows={5}
            className="field field-sizing-content max-h-60 min-h-32"
            value={text}
            onChange={(event) => setText(event.target.value)}
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
    </FormDialog>
  );
}
