/** The dialogs for a new pack of stamps, and for a new stamp: a picture and its name. */
import { useEffect, useRef, useState } from "react";
import { request, useApi } from "../api/api";
import { LIMITS } from "../api/limits";
import { UploadError, uploadFile } from "../files/upload";
import type { TextKey } from "../i18n/texts";
import { FormDialog } from "../ui/dialogs/form-dialog";
import { LabelledField } from "../ui/fields/labelled-field";
import { useLength } from "../ui/fields/length";
import { useTranslation } from "../ui/preferences";
import { AddStamp, CreateStampPack } from "./operations";
import { isStampName, stampNameOf } from "./stamp-name";

const PICTURE_TYPES = "image/jpeg,image/png,image/gif,image/webp,image/avif";

export function NewPackDialog({ onClose }: { onClose: () => void }) {
  const { t } = useTranslation();
  const { cached } = useApi();
  const [name, setName] = useState("");
  const length = useLength(name, LIMITS.stampPackName);
  async function create() {
    await request(cached, CreateStampPack, { name: name.trim() });
    onClose();
  }
  return (
    <FormDialog
      title={t("stamps.newPack")}
      action={t("create")}
      canSubmit={name.trim() !== "" && !length.isTooLong}
      submit={create}
      onClose={onClose}
    >
      <LabelledField label={t("stamps.packName")} length={length}>
        {(props) => (
          <input
            {...props}
            className="field"
            value={name}
            onChange={(event) => setName(event.target.value)}
          />
        )}
      </LabelledField>
    </FormDialog>
  );
}

/** The server has refused the picture. */
class PictureRefusedError extends Error {
  constructor(readonly textKey: TextKey) {
    super(textKey);
  }
}

export function NewStampDialog({ packId, onClose }: { packId: string; onClose: () => void }) {
  const { t } = useTranslation();
  const [name, setName] = useState("");
  const [file, setFile] = useState<File | null>(null);
  const add = useAddStamp(packId);
  const isNamed = isStampName(name);
  return (
    <FormDialog
      title={t("stamps.add")}
      action={t("stamps.addAction")}
      canSubmit={file !== null && isNamed}
      submit={async () => {
        if (file !== null) await add(file, name);
        onClose();
      }}
      errorTextOf={(error) => {
        if (error instanceof PictureRefusedError) return t(error.textKey);
        return error instanceof UploadError ? t("file.failed") : null;
      }}
      onClose={onClose}
    >
      <LabelledField label={t("stamps.picture")} hint={t("stamps.pictureHint")}>
        {(props) => (
          <input
            {...props}
            type="file"
            accept={PICTURE_TYPES}
            className="field"
            onChange={({ target }) => {
              const chosen = target.files?.[0] ?? null;
              setFile(chosen);
              if (chosen && name === "") setName(stampNameOf(chosen.name));
            }}
          />
        )}
      </LabelledField>
      <LabelledField label={t("stamps.name")} hint={t("stamps.nameHint")}>
        {(props) => (
          <input
            {...props}
            className="field"
            value={name}
            aria-invalid={name !== "" && !isNamed}
            autoCapitalize="none"
            onChange={(event) => setName(event.target.value)}
          />
        )}
      </LabelledField>
    </FormDialog>
  );
}

/** Returns a function that uploads a picture and adds it to the pack. Closing the dialog ends the upload. */
function useAddStamp(packId: string) {
  const { cached, direct } = useApi();
  const running = useRef<AbortController | null>(null);
  useEffect(() => () => running.current?.abort(), []);
  return async (file: File, name: string) => {
    running.current = new AbortController();
    const { signal } = running.current;
    const upload = await uploadFile(direct, file, { purpose: "STAMP", signal, onProgress: () => {} });
    if (upload.refusal) throw new PictureRefusedError(`file.refusal.${upload.refusal}`);
    await request(cached, AddStamp, { input: { packId, name, uploadId: upload.id } });
  };
}
