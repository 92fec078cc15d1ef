/**
 * The files of a text that is being written. Each is uploaded at once, or when the server can be reached, and described,
 * retried or removed. They are kept with the draft. After a reload their uploads go on, and those whose bytes are lost
 * ask for the file again.
 */
import { type ClipboardEvent, type DragEvent, useEffect, useRef, useState } from "react";
import { useApi } from "../api/api";
import { connectionReturns } from "../api/connection";
import { errorCode, failureTextKey } from "../api/failure";
import { DRAFT, type UserStorage, useUserStorage } from "../session/user-storage";
import { useTranslation } from "../ui/preferences";
import { notify } from "../ui/toasts";
import {
  attachedFile,
  type ComposedFile,
  chosenFile,
  hasSameFacts,
  outcomeOf,
  readyFiles,
  restoredFiles,
  sendableFiles,
  withOtherBytes,
} from "./composed-file";
import { sendComposed } from "./composed-upload";
import { forgetBytes, keepBytes } from "./kept-bytes";
import type { Attachment } from "./operations";
import { discardUpload, UploadError } from "./upload";

const MAX_FILES = 10;

/**
 * Returns the composed files of a field. `initial` are the files of an edited post, which are shown if no files are
 * kept.
 */
export function useComposedFiles(field: string, initial: readonly ComposedFile[] = []) {
  const { t } = useTranslation();
  const { direct, connection } = useApi();
  const { owner } = useUserStorage();
  const kept = useKeptFiles(field, initial);
  const uploads = useRef(new Map<string, AbortController>());

  // Uploads end with the field, and continue when it is shown again.
  // biome-ignore lint/correctness/useExhaustiveDependencies: runs once, when the field is shown.
  useEffect(() => {
    const { current } = uploads;
    for (const { key, state } of kept.latest()) if (state !== "failed") void send(key);
    return () => {
      for (const controller of current.values()) controller.abort();
    };
  }, []);

  const find = (key: string) => kept.latest().find((each) => each.key === key);

  function send(key: string): Promise<void> {
    const controller = new AbortController();
    uploads.current.set(key, controller);
    return sendUntil(key, controller.signal);
  }

  /** Sends the file whenever the server can be reached, until it is ready, has failed, or the signal ends it. */
  async function sendUntil(key: string, signal: AbortSignal): Promise<void> {
    const composed = find(key);
    if (!composed || composed.isAttached || signal.aborted) return;
    const changeUnlessAborted = (part: Partial<ComposedFile>, isProgress = false) =>
      signal.aborted || kept.change(key, part, isProgress);
    try {
      const upload = await sendComposed(direct, owner, composed, {
        signal,
        onCreated: (uploadId) => changeUnlessAborted({ uploadId }),
        onProgress: (share) => changeUnlessAborted({ share, state: "sending" }, true),
      });
      changeUnlessAborted(outcomeOf(upload));
    } catch (error) {
      // A file that the server has checked stays ready if the server can't be asked about it now.
      if (composed.state === "ready" || signal.aborted) return;
      if (errorCode(error) === "OFFLINE") {
        kept.change(key, { state: "waiting" });
        await connectionReturns(connection);
        return await sendUntil(key, signal);
      }
      const failure = error instanceof UploadError ? "file.failed" : failureTextKey(error);
      kept.change(key, { state: "failed", failure });
    }
  }

  function add(added: readonly File[]) {
    const free = MAX_FILES - kept.latest().length;
    const chosen = added.filter(({ size }) => size > 0).slice(0, free);
    if (chosen.length < added.length) notify(t("file.tooMany", { count: MAX_FILES }));
    for (const file of chosen) {
      const composed = chosenFile(file);
      keepBytes(owner, composed.key, file);
      kept.set([...kept.latest(), composed]);
      void send(composed.key);
    }
  }

  /** Adds a file that the server has checked already, such as one of the library. */
  function addStored(file: Attachment) {
    const files = kept.latest();
    if (files.some(({ uploadId }) => uploadId === file.id)) return;
    if (files.length >= MAX_FILES) notify(t("file.tooMany", { count: MAX_FILES }));
    else kept.set([...files, attachedFile(file)]);
  }

  /** Continues an upload with the bytes of its file. Another file takes the place of the composed one. */
  function chooseAgain(key: string, file: File) {
    keepBytes(owner, key, file);
    const composed = find(key);
    if (!composed) return;
    if (hasSameFacts(composed, file)) return retry(key);
    if (composed.uploadId) discardUpload(composed.uploadId);
    kept.change(key, withOtherBytes(composed, file));
    void send(key);
  }

  function retry(key: string) {
    kept.change(key, { state: "sending", failure: null });
    void send(key);
  }

  function remove(key: string) {
    uploads.current.get(key)?.abort();
    forgetBytes(owner, key);
    const composed = find(key);
    if (composed?.uploadId && !composed.isAttached) discardUpload(composed.uploadId);
    kept.set(kept.latest().filter((each) => each.key !== key));
  }

  return {
    files: kept.files,
    /** Whether files are kept in the browser, because they were changed. */
    isKept: kept.isKept,
    /** Returns the idempotency key of a text with these files. Other files, or other descriptions, have another key. */
    idempotencyKey: (textKey: string) => (kept.files.length > 0 ? `${textKey} ${kept.version}` : textKey),
    add,
    addStored,
    chooseAgain,
    remove,
    retry,
    setAltText: (key: string, altText: string) => kept.change(key, { altText }),
    /** Forgets the files after they were sent, or were handed to the message that sends them. */
    clear() {
      for (const controller of uploads.current.values()) controller.abort();
      kept.clear();
    },
    /** Forgets the files, and deletes their uploads. */
    discard() {
      for (const { key } of kept.latest()) remove(key);
      kept.clear();
    },
    /** Attributes of the form into which files are dropped and pasted. */
    dropProps: {
      onPaste: ({ clipboardData }: ClipboardEvent) =>
        clipboardData.files.length > 0 && add([...clipboardData.files]),
      onDragOver: (event: DragEvent) => event.dataTransfer.types.includes("Files") && event.preventDefault(),
      onDrop: (event: DragEvent) => {
        if (event.dataTransfer.files.length === 0) return;
        event.preventDefault();
        add([...event.dataTransfer.files]);
      },
    },
    /** The files to send; null while one of them is not ready, or is a picture without a description. */
    ready: readyFiles(kept.files),
    /** The files of a message, of which some may still be on their way; null if one of them can't be sent as it is. */
    sendable: sendableFiles(kept.files),
  };
}

export type ComposedFiles = ReturnType<typeof useComposedFiles>;

interface KeptState {
  files: readonly ComposedFile[];
  version: string;
  isKept: boolean;
}

/** The files of a field, which are stored at each change but for progress. `latest` is up to date between renders. */
function useKeptFiles(field: string, initial: readonly ComposedFile[]) {
  const storage = useUserStorage();
  const name = `${DRAFT}files ${field}`;
  const [state, setState] = useState(() => loadFiles(storage, name, initial));
  const current = useRef(state);

  function show(next: KeptState) {
    current.current = next;
    setState(next);
  }
  function set(files: readonly ComposedFile[]) {
    const isUnchanged =
      JSON.stringify(readyFiles(files)) === JSON.stringify(readyFiles(current.current.files));
    const version = isUnchanged ? current.current.version : crypto.randomUUID();
    const isKept = files.length > 0 || initial.length > 0;
    show({ files, version, isKept });
    if (isKept) storage.set(name, { files, version });
    else storage.remove(name);
  }
  return {
    ...state,
    latest: () => current.current.files,
    set,
    change(key: string, part: Partial<ComposedFile>, isProgress = false) {
      const files = current.current.files.map((each) => (each.key === key ? { ...each, ...part } : each));
      if (isProgress) show({ ...current.current, files });
      else set(files);
    },
    clear() {
      storage.remove(name);
      show({ files: [], version: crypto.randomUUID(), isKept: false });
    },
  };
}

function loadFiles(storage: UserStorage, name: string, initial: readonly ComposedFile[]): KeptState {
  const { files, version } = Object(storage.get(name));
  if (typeof version === "string") return { files: restoredFiles(files), version, isKept: true };
  return { files: initial, version: crypto.randomUUID(), isKept: false };
}
