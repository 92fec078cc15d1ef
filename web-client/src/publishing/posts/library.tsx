/** The viewer's media library: files that are kept, to add them to posts again. */
import { useCallback, useEffect, useState } from "react";
import { request, useApi } from "../../api/api";
import type { Attachment } from "../../files/operations";
import { usePicture } from "../../files/pictures";
import type { ComposedFiles } from "../../files/use-composed-files";
import { Button, IconButton } from "../../ui/button";
import { Icon } from "../../ui/icons";
import { useTranslation } from "../../ui/preferences";
import { ErrorState, LoadingState } from "../../ui/states";
import { notify, notifyFailure } from "../../ui/toasts";
import { AddToLibrary, MediaLibrary, RemoveFromLibrary } from "../operations";

const PAGE_SIZE = 30;

export function LibraryPanel({ composed }: { composed: ComposedFiles }) {
  const { t } = useTranslation();
  const { direct } = useApi();
  const { files, hasMore, error, load } = useLibrary();
  const ready = composed.ready ?? [];

  async function keep() {
    for (const { uploadId, altText } of ready) await request(direct, AddToLibrary, { uploadId, altText });
    notify(t("publishing.libraryKept"));
    await load(null);
  }
  async function remove({ id }: Attachment) {
    await request(direct, RemoveFromLibrary, { uploadId: id });
    await load(null);
  }

  return (
    <section
      aria-label={t("publishing.library")}
      className="flex flex-col gap-3 rounded-card border border-line p-3"
    >
      {files === null && error !== null && <ErrorState error={error} retry={() => void load(null)} />}
      {files === null && error === null && <LoadingState rows={1} />}
      {files?.length === 0 && <p className="text-sm text-quiet">{t("publishing.libraryEmpty")}</p>}
      {files !== null && files.length > 0 && (
        <ul className="thin-scroll flex max-h-60 flex-wrap gap-2 overflow-auto">
          {files.map((file) => (
            <LibraryFile
              key={file.id}
              file={file}
              use={() => composed.addStored(file)}
              remove={() => void remove(file).catch(notifyFailure)}
            />
          ))}
        </ul>
      )}
      <div className="flex flex-wrap gap-2">
        {hasMore && (
          <Button onClick={() => void load(files?.at(-1)?.id ?? null)}>{t("publishing.libraryMore")}</Button>
        )}
        {ready.length > 0 && (
          <Button onClick={() => void keep().catch(notifyFailure)}>{t("publishing.libraryKeep")}</Button>
        )}
      </div>
    </section>
  );
}

/** Loads the library page by page. `load` with null loads the first page again. */
function useLibrary() {
  const { direct } = useApi();
  const [files, setFiles] = useState<readonly Attachment[] | null>(null);
  const [hasMore, setHasMore] = useState(false);
  const [error, setError] = useState<unknown>(null);
  const load = useCallback(
    async (after: string | null) => {
      try {
        const { mediaLibrary } = await request(direct, MediaLibrary, { after, limit: PAGE_SIZE });
        setFiles((shown) => (after === null ? mediaLibrary : [...(shown ?? []), ...mediaLibrary]));
        setHasMore(mediaLibrary.length === PAGE_SIZE);
        setError(null);
      } catch (failure) {
        setError(failure);
      }
    },
    [direct],
  );
  useEffect(() => void load(null), [load]);
  return { files, hasMore, error, load };
}

interface LibraryFileProps {
  file: Attachment;
  use: () => void;
  remove: () => void;
}

function LibraryFile({ file: { name, altText, thumbnailUrl }, use, remove }: LibraryFileProps) {
  const { t } = useTranslation();
  const picture = usePicture(thumbnailUrl);
  const fullName = altText ? `${name}, ${altText}` : name;
  return (
    <li className="relative w-24">
      <button
        type="button"
        aria-label={t("publishing.libraryUse", { name: fullName })}
        className="flex w-full flex-col items-center gap-1 rounded-lg border border-line p-1 hover:bg-hover"
        onClick={use}
      >
        {picture ? (
          <img src={picture} alt="" className="size-20 rounded object-cover" />
        ) : (
          <Icon name="file" className="m-6 size-8 text-quiet" />
        )}
        <span className="w-full truncate text-xs">{name}</span>
      </button>
      <IconButton
        icon="trash"
        size="size-8"
        className="absolute top-1 right-1 bg-raised"
        label={t("publishing.libraryRemove", { name: fullName })}
        onClick={remove}
      />
    </li>
  );
}
