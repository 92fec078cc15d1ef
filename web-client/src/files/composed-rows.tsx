/** The files of a text that is being written: their progress, descriptions and failures. */
import { useEffect, useRef, useState } from "react";
import { LIMITS } from "../api/limits";
import { IconButton } from "../ui/button";
import { useLength } from "../ui/fields/length";
import { Icon } from "../ui/icons";
import { useTranslation } from "../ui/preferences";
import { LabelledProgress } from "../ui/progress";
import type { ComposedFile } from "./composed-file";
import { bytesOf } from "./kept-bytes";
import { usePicture } from "./pictures";
import type { ComposedFiles } from "./use-composed-files";

export function ComposedFileRows({ composed }: { composed: ComposedFiles }) {
  const { t } = useTranslation();
  return (
    <ul aria-label={t("file.list")} className="mb-2 flex flex-col gap-2">
      {composed.files.map((each) => (
        <ComposedFileRow key={each.key} each={each} composed={composed} />
      ))}
    </ul>
  );
}

function ComposedFileRow({ each, composed }: { each: ComposedFile; composed: ComposedFiles }) {
  const { t } = useTranslation();
  const { key, name, state, failure } = each;
  return (
    <li
      data-composed={state}
      className="flex items-start gap-3 rounded-card border border-line bg-raised p-2"
    >
      <ComposedFilePreview each={each} />
      <div className="flex min-w-0 grow flex-col gap-1">
        <span className="truncate text-sm font-medium">{name}</span>
        {failure && (
          <p role="alert" className="flex flex-wrap gap-x-3 text-sm text-bad">
            {t(failure)}
            <button type="button" className="text-accent underline" onClick={() => composed.retry(key)}>
              {t("tryAgain")}
            </button>
          </p>
        )}
        {state === "interrupted" && <InterruptedNotice each={each} composed={composed} />}
        {!failure && <ComposedFileDetails each={each} composed={composed} />}
      </div>
      <IconButton
        icon="close"
        size="size-8"
        label={t("file.remove", { name })}
        onClick={() => composed.remove(key)}
      />
    </li>
  );
}

/** Says that the bytes were lost with the page, and lets the user choose the file again. */
function InterruptedNotice({ each, composed }: { each: ComposedFile; composed: ComposedFiles }) {
  const { t, language } = useTranslation();
  const input = useRef<HTMLInputElement>(null);
  const { key, name, share } = each;
  const percent = new Intl.NumberFormat(language, { style: "percent" }).format(share);
  return (
    <p role="alert" className="flex flex-wrap gap-x-3 text-sm text-wait">
      {share > 0 ? t("file.interrupted", { percent }) : t("file.lost")}
      <input
        ref={input}
        type="file"
        hidden
        onChange={({ target }) => {
          const file = target.files?.[0];
          target.value = "";
          if (file) composed.chooseAgain(key, file);
        }}
      />
      <button
        type="button"
        aria-label={t("file.chooseAgainNamed", { name })}
        className="text-accent underline"
        onClick={() => input.current?.click()}
      >
        {t("file.chooseAgain")}
      </button>
    </p>
  );
}

/** The progress, and the description, which can be typed while the file is sent. */
function ComposedFileDetails({ each, composed }: { each: ComposedFile; composed: ComposedFiles }) {
  const { t, language } = useTranslation();
  const length = useLength(each.altText, LIMITS.altText);
  const percent = new Intl.NumberFormat(language, { style: "percent" }).format(each.share);
  const label = each.share < 1 ? t("file.sending", { percent }) : t("avatar.checking");
  return (
    <>
      {length.note}
      {each.state === "waiting" && (
        <p role="status" className="flex items-center gap-1.5 text-sm text-wait">
          <Icon name="clock" className="size-4" />
          {t("message.waiting")}
        </p>
      )}
      {each.state === "sending" && <LabelledProgress label={label} done={each.share} total={1} />}
      <input
        type="text"
        aria-label={t("file.altNamed", { name: each.name })}
        placeholder={t(each.isPicture ? "file.alt" : "file.altOptional")}
        required={each.isPicture}
        value={each.altText}
        onChange={({ target }) => composed.setAltText(each.key, target.value)}
        {...length.fieldProps}
        className="min-h-9 w-full rounded-lg border border-quiet bg-raised px-2 text-sm"
      />
    </>
  );
}

/** A chosen picture, as it is on the user's disk or, after a reload, at the server. */
function ComposedFilePreview({ each: { key, uploadId, state, isPicture } }: { each: ComposedFile }) {
  const local = useObjectUrl(isPicture ? bytesOf(key) : undefined);
  const isStored = isPicture && state === "ready" && !bytesOf(key);
  const stored = usePicture(isStored ? `/files/${uploadId}/thumbnail` : null);
  const url = local ?? stored;
  if (url && isPicture) return <img src={url} alt="" className="size-14 shrink-0 rounded-lg object-cover" />;
  return <Icon name="file" className="m-3 size-8 shrink-0 text-quiet" />;
}

/** Returns an address for the bytes of a file; null without a file. */
function useObjectUrl(file: File | undefined): string | null {
  const [url, setUrl] = useState<string | null>(null);
  useEffect(() => {
    if (!file) return setUrl(null);
    const created = URL.createObjectURL(file);
    setUrl(created);
    return () => URL.revokeObjectURL(created);
  }, [file]);
  return url;
}
