/** The pictures of a message or a post, one at a time and large. */
import { useEffect, useState } from "react";
import { IconButton } from "../ui/button";
import { Dialog } from "../ui/dialogs/dialog";
import { useTranslation } from "../ui/preferences";
import { notify } from "../ui/toasts";
import { downloadFile } from "./download";
import type { Attachment } from "./operations";
import { usePicture } from "./pictures";

export interface LargePicturesProps {
  pictures: readonly Attachment[];
  /** Index of the picture that is shown first. */
  first: number;
  onClose: () => void;
}

export function LargePictures({ pictures, first, onClose }: LargePicturesProps) {
  const { t } = useTranslation();
  const last = pictures.length - 1;
  const [chosen, setChosen] = useState(first);
  const index = Math.min(chosen, last);
  useKeys({
    ArrowLeft: () => setChosen(Math.max(index - 1, 0)),
    ArrowRight: () => setChosen(Math.min(index + 1, last)),
    Home: () => setChosen(0),
    End: () => setChosen(last),
  });
  const picture = pictures[index];
  if (!picture) return null;
  return (
    <Dialog title={picture.name} onClose={onClose}>
      <LargePicture key={picture.id} picture={picture} isAlone={last === 0} />
      <div className="mt-3 flex items-start justify-between gap-3 text-sm text-quiet">
        <p role="status" className="min-w-0 break-words">
          {last > 0 && (
            <span className="block">{t("post.pictureOf", { number: index + 1, count: last + 1 })}</span>
          )}
          {picture.altText}
        </p>
        <div className="flex shrink-0 items-center gap-1">
          {last > 0 && (
            <>
              <StepButton step={-1} isAtEnd={index === 0} onClick={() => setChosen(index - 1)} />
              <StepButton step={1} isAtEnd={index === last} onClick={() => setChosen(index + 1)} />
            </>
          )}
          <button
            type="button"
            className="min-h-6 text-accent underline"
            onClick={() => downloadFile(picture).catch(() => notify(t("file.downloadFailed")))}
          >
            {t("file.download")}
          </button>
        </div>
      </div>
    </Dialog>
  );
}

/** Calls the handler of a key that is pressed without modifiers, wherever the focus is. */
function useKeys(handlers: Record<string, () => void>): void {
  useEffect(() => {
    function handleKey(event: KeyboardEvent) {
      const handler = handlers[event.key];
      if (!handler || event.altKey || event.ctrlKey || event.metaKey) return;
      event.preventDefault();
      handler();
    }
    addEventListener("keydown", handleKey);
    return () => removeEventListener("keydown", handleKey);
  });
}

/** A picture of several has a fixed height, so that the buttons below it stay where they are. */
function LargePicture({ picture, isAlone }: { picture: Attachment; isAlone: boolean }) {
  const thumbnail = usePicture(picture.thumbnailUrl);
  const url = usePicture(picture.url) ?? thumbnail;
  return (
    <div className={isAlone ? "" : "h-[60vh]"}>
      {url && (
        <img
          src={url}
          alt={picture.altText}
          className={`w-full object-contain ${isAlone ? "max-h-[70vh]" : "h-full"}`}
        />
      )}
    </div>
  );
}

interface StepButtonProps {
  step: 1 | -1;
  /** The button then does nothing, and keeps the focus. */
  isAtEnd: boolean;
  onClick: () => void;
}

function StepButton({ step, isAtEnd, onClick }: StepButtonProps) {
  const { t } = useTranslation();
  return (
    <IconButton
      icon="back"
      label={t(step === 1 ? "file.nextPicture" : "file.previousPicture")}
      size="size-8"
      className={`aria-disabled:opacity-50 ${step === 1 ? "rotate-180" : ""}`}
      aria-disabled={isAtEnd}
      onClick={isAtEnd ? undefined : onClick}
    />
  );
}
