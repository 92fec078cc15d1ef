/** The files of a message or a post: a grid of pictures, and the other files to download. */
import { useMemo, useState } from "react";
import { lazyDialog } from "../app/lazy-screen";
import { sizeText } from "../my-data/export-size";
import { Icon } from "../ui/icons";
import { useTranslation } from "../ui/preferences";
import { notify } from "../ui/toasts";
import { blurredPicture } from "./blurhash";
import { downloadFile } from "./download";
import type { LargePicturesProps } from "./large-pictures";
import type { Attachment } from "./operations";
import { usePicture } from "./pictures";

const LargePictures = lazyDialog<LargePicturesProps>(() =>
  import("./large-pictures").then((module) => module.LargePictures),
);

export function AttachmentList({ attachments }: { attachments: readonly Attachment[] }) {
  const [openIndex, setOpenIndex] = useState<number | null>(null);
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
              onOpen={() => setOpenIndex(index)}
            />
          ))}
        </div>
      )}
      {openIndex !== null && (
        <LargePictures pictures={pictures} first={openIndex} onClose={() => setOpenIndex(null)} />
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
  onOpen: () => void;
}

/** A picture in the room that it needs. A click shows it large. */
function AttachedPicture({ picture, isAlone, hasOwnRow, onOpen }: AttachedPictureProps) {
  const { t } = useTranslation();
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
    <button
      type="button"
      aria-label={t("file.open", { name: picture.altText })}
      onClick={onOpen}
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
