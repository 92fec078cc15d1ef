/** The buttons with which the viewer chooses and removes the picture. */
import { useEffect, useRef, useState } from "react";
import { request, useApi } from "../api/api";
import { graphql } from "../api/graphql";
import type { TextKey } from "../i18n/texts";
import { Button } from "../ui/button";
import { useTranslation } from "../ui/preferences";
import { LabelledProgress } from "../ui/progress";
import { notify, notifyError } from "../ui/toasts";
import { UploadError, uploadFile } from "./upload";

const SetAvatar = graphql(`mutation SetAvatar($id: ID!) { setAvatar(uploadId: $id) { id avatarUrl } }`);
const RemoveAvatar = graphql(`mutation RemoveAvatar { removeAvatar { id avatarUrl } }`);

const PICTURE_TYPES = "image/jpeg,image/png,image/gif,image/webp,image/avif";

export function AvatarActions({ hasAvatar }: { hasAvatar: boolean }) {
  const { t } = useTranslation();
  const { cached } = useApi();
  const { choose, share, failure } = useAvatarUpload();
  const input = useRef<HTMLInputElement>(null);
  const remove = () => request(cached, RemoveAvatar, {}).then(() => notify(t("avatar.removed")), notifyError);
  return (
    <section aria-label={t("avatar.title")} aria-busy={share !== null} className="flex flex-wrap gap-2">
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
        {t(hasAvatar ? "avatar.change" : "avatar.choose")}
      </Button>
      {hasAvatar && <Button onClick={remove}>{t("avatar.remove")}</Button>}
      {share !== null && <AvatarUploadProgress share={share} />}
      {failure && (
        <p role="alert" className="w-full text-sm text-bad">
          {t(failure)}
        </p>
      )}
    </section>
  );
}

function AvatarUploadProgress({ share }: { share: number }) {
  const { t, language } = useTranslation();
  const percent = new Intl.NumberFormat(language, { style: "percent" }).format(share);
  const label = share < 1 ? t("file.sending", { percent }) : t("avatar.checking");
  return <LabelledProgress label={label} done={share} total={1} />;
}

/** Uploads a picture and makes it the avatar. `share` is the sent part, from 0 to 1; null while nothing is sent. */
function useAvatarUpload() {
  const { t } = useTranslation();
  const { cached, direct } = useApi();
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
      const upload = await uploadFile(direct, file, { purpose: "AVATAR", signal, onProgress: setShare });
      if (upload.refusal) setFailure(`file.refusal.${upload.refusal}`);
      else {
        await request(cached, SetAvatar, { id: upload.id });
        notify(t("avatar.set"));
      }
    } catch (error) {
      if (signal.aborted) return;
      if (error instanceof UploadError) setFailure("file.failed");
      else notifyError(error);
    }
    setShare(null);
  }
  return { choose, share, failure };
}
