/** The files of a message or a post: a grid of pictures, and the other files to download. */
import { useMemo, useState } from "react";
import { sizeText } from "../my-data/export-size";
import { Dialog } from "../ui/dialogs/dialog";
import { Icon } from "../ui/icons";
import { useTranslation } from "../ui/preferences";
import { notify } from "../ui/toasts";
import { blurredPicture } from "./blurhash";
import { downloadFile } from "./download";
import type { Attachment } from "./operations";
import { usePicture } from "./pictures";

export function AttachmentList({ attachments }: { attachments: readonly Attachment[] }) {
  const pictures = attachments.filter(({ thumbnailUrl }) => thumbnailUrl !== null);
  const files = attachments.filter(({ thumbnailUrl }) => thumbnailUrl === null);
  return (
    <>
      {pictures.length > 0 && (
        <div className={`mt-1 grid max-w-lg gap-1 ${pictures.length > 1 ? "grid-cols-2" : ""}`}>
          {pictures.map((picture, index) => (
            <AttachedPicture
              key={picture.id}
              picture={picture}
              isAlone={pictures.length === 1}
              hasOwnRow={index === pictures.length - 1 && index % 2 === 0}
            />
          ))}
        </div>
      )}
      {files.map((file) => (
        <AttachedFileButton key={file.id} file={file} />
      ))}
    </>
  );
}

interface AttachedPictureProps {
  picture: Attachment;
  /** Whether it is the only picture. It is then shown whole. */
  isAlone: boolean;
  hasOwnRow: boolean;
}

/** A picture in the room that it needs. A click shows it large. */
function AttachedPicture({ picture, isAlone, hasOwnRow }: AttachedPictureProps) {
  const { t } = useTranslation();
  const [isOpen, setIsOpen] = useState(false);
  const url = usePicture(picture.thumbnailUrl);
  const blurred = useMemo(
    () => (picture.blurhash === null ? null : blurredPicture(picture.blurhash)),
    [picture.blurhash],
  );
  const aspectRatio = isAlone
    ? `${picture.width ?? 1} / ${picture.height ?? 1}`
    : hasOwnRow
      ? "8 / 3"
      : "4 / 3";
  return (
    <>
      <button
        type="button"
        aria-label={t("file.open", { name: picture.altText })}
        onClick={() => setIsOpen(true)}
        className={`max-h-80 min-w-0 overflow-hidden rounded-xl bg-well bg-cover bg-center ${hasOwnRow ? "col-span-full" : ""}`}
        style={{ aspectRatio, backgroundImage: blurred ? `url(${blurred})` : undefined }}
      >
        {url && (
          <img
            src={url}
            alt={picture.altText}
            data-picture={picture.id}
            className={`size-full ${isAlone ? "object-contain" : "object-cover"}`}
          />
        )}
      </button>
      {isOpen && <LargePicture picture={picture} onClose={() => setIsOpen(false)} />}
    </>
  );
}

function LargePicture({ picture, onClose }: { picture: Attachment; onClose: () => void }) {
  const { t } = useTranslation();
  const url = usePicture(picture.url);
  return (
    <Dialog title={picture.name} onClose={onClose}>
      {url && <img src={url} alt={picture.altText} className="max-h-[70vh] w-full object-contain" />}
      <p className="mt-3 flex items-start justify-between gap-3 text-sm text-quiet">
        <span className="min-w-0 break-words">{picture.altText}</span>
        <button
          type="button"
          className="shrink-0 text-accent underline"
          onClick={() => downloadFile(picture).catch(() => notify(t("file.downloadFailed")))}
        >
          {t("file.download")}
        </button>
      </p>
    </Dialog>
  );
}

function AttachedFileButton({ file }: { file: Attachment }) {
  const { t, language } = useTranslation();
  return (
    <button
      type="button"
      data-file={file.id}
      title={file.altText || undefined}
      onClick={() => downloadFile(file).catch(() => notify(t("file.downloadFailed")))}
      className="mt-1 flex w-full max-w-lg items-center gap-3 rounded-xl border border-line bg-raised px-3 py-2 text-left hover:bg-hover"
    >
      <Icon name="file" className="size-5 shrink-0 text-quiet" />
      <span className="sr-only">{t("file.download")}</span>
      <span className="min-w-0 grow truncate">{file.name}</span>
      <span className="shrink-0 text-sm text-quiet tabular-nums">{sizeText(language, file.size)}</span>
    </button>
  );
}
