/** The buttons with which a picture of a person or a community is chosen and removed. */
import { useEffect, useRef, useState } from "react";
import { useApi } from "../api/api";
import type { TextKey } from "../i18n/texts";
import { Button } from "../ui/button";
import { useTranslation } from "../ui/preferences";
import { LabelledProgress } from "../ui/progress";
import { notify, notifyError } from "../ui/toasts";
import { UploadError, uploadFile } from "./upload";

const PICTURE_TYPES = "image/jpeg,image/png,image/gif,image/webp,image/avif";

interface PictureActionsProps {
  /** An avatar is cut to a square, a banner to 3:1. */
  purpose: "AVATAR" | "BANNER";
  /** Beginning of the texts that name the picture, such as `avatar.set`. */
  subject: "avatar" | "banner" | "communityPicture" | "communityBanner";
  hasPicture: boolean;
  set: (uploadId: string) => Promise<unknown>;
  remove: () => Promise<unknown>;
}

export function PictureActions({ purpose, subject, hasPicture, set, remove }: PictureActionsProps) {
  const { t } = useTranslation();
  const { choose, share, failure } = usePictureUpload(purpose, async (id) => {
    await set(id);
    notify(t(`${subject}.set`));
  });
  const input = useRef<HTMLInputElement>(null);
  const words = purpose === "AVATAR" ? "avatar" : "banner";
  return (
    <section aria-label={t(`${subject}.title`)} aria-busy={share !== null} className="flex flex-wrap gap-2">
      <input
        ref={input}
        type="file"
        accept={PICTURE_TYPES}
        hidden
        onChange={({ target }) => {
          const [file] = target.files ?? [];
          target.value = "";
          if (file) void choose(file);
        }}
      />
      <Button aria-disabled={share !== null} onClick={() => share === null && input.current?.click()}>
        {t(hasPicture ? `${words}.change` : `${words}.choose`)}
      </Button>
      {hasPicture && (
        <Button onClick={() => remove().then(() => notify(t(`${subject}.removed`)), notifyError)}>
          {t(`${words}.remove`)}
        </Button>
      )}
      {share !== null && <PictureUploadProgress share={share} />}
      {failure && (
        <p role="alert" className="w-full text-sm text-bad">
          {t(failure)}
        </p>
      )}
    </section>
  );
}

function PictureUploadProgress({ share }: { share: number }) {
  const { t, language } = useTranslation();
  const percent = new Intl.NumberFormat(language, { style: "percent" }).format(share);
  const label = share < 1 ? t("file.sending", { percent }) : t("avatar.checking");
  return <LabelledProgress label={label} done={share} total={1} />;
}

/** Uploads a picture and shows it. `share` is the sent part, from 0 to 1; null while nothing is sent. */
function usePictureUpload(purpose: "AVATAR" | "BANNER", show: (uploadId: string) => Promise<void>) {
  const { direct } = useApi();
  const [share, setShare] = useState<number | null>(null);
  const [failure, setFailure] = useState<TextKey | null>(null);
  const running = useRef<AbortController | null>(null);
  useEffect(() => () => running.current?.abort(), []);

  async function choose(file: File) {
    const controller = new AbortController();
    running.current = controller;
    const { signal } = controller;
    setFailure(null);
    setShare(0);
    try {
      const upload = await uploadFile(direct, file, { purpose, signal, onProgress: setShare });
      if (upload.refusal) setFailure(`file.refusal.${upload.refusal}`);
      else await show(upload.id);
    } catch (error) {
      if (signal.aborted) return;
      if (error instanceof UploadError) setFailure("file.failed");
      else notifyError(error);
    }
    setShare(null);
  }
  return { choose, share, failure };
}
