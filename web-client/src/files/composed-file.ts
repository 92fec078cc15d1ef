/** A file of a text that is being written, what of it is kept through reloads, and what becomes of its upload. */
import { LIMITS } from "../api/limits";
import type { TextKey } from "../i18n/texts";
import type { Attachment, CheckedUpload } from "./operations";

/** What is known of a chosen file without its bytes. */
interface FileFacts {
  name: string;
  /** Number of bytes. */
  size: number;
  /** When the file was changed last, in milliseconds since the Unix epoch. */
  modifiedAt: number;
}

/** A file that the server may not have yet. */
export interface UnsentFile extends FileFacts {
  key: string;
  /** Id of the upload; null until the server has created it. */
  uploadId: string | null;
  altText: string;
}

export interface ComposedFile extends UnsentFile {
  /**
   * WAITING: until the server can be reached. INTERRUPTED: the rest of the bytes was lost with the page, so the user has
   * to choose the file again.
   */
  state: "sending" | "waiting" | "ready" | "failed" | "interrupted";
  /** The part of the bytes that the server has, from 0 to 1. */
  share: number;
  /** Why the state is failed; null in other states. */
  failure: TextKey | null;
  isPicture: boolean;
  /** Whether the file belongs to the edited post already. */
  isAttached: boolean;
}

/** A file that can be attached. */
export interface ReadyFile {
  uploadId: string;
  name: string;
  altText: string;
}

/** A file of a message, which is sent when all of its files are ready. */
export type MessageFile = ReadyFile | UnsentFile;

export const isReady = (file: MessageFile): file is ReadyFile => !("key" in file);

const factsOf = ({ name, size, lastModified }: File): FileFacts => ({ name, size, modifiedAt: lastModified });

/** A file of a message can't be sent: the server refuses it, or its bytes are lost. */
export class FileFailure extends Error {
  constructor(readonly reason: TextKey) {
    super(reason);
  }
}

/** Returns a file that was just chosen. */
export function chosenFile(file: File): ComposedFile {
  return {
    ...factsOf(file),
    key: crypto.randomUUID(),
    uploadId: null,
    state: "sending",
    share: 0,
    failure: null,
    isPicture: file.type.startsWith("image/") && !file.type.includes("svg"),
    altText: "",
    isAttached: false,
  };
}

/** Returns a file that an edited post has already. */
export function attachedFile({ id, name, size, width, altText }: Attachment): ComposedFile {
  const isPicture = width !== null;
  const upload = { uploadId: id, state: "ready", share: 1, failure: null } as const;
  return { ...upload, key: id, name, size, modifiedAt: 0, isPicture, altText, isAttached: true };
}

/** Returns a file with other bytes, and the same description. */
export function withOtherBytes(composed: ComposedFile, file: File): ComposedFile {
  return { ...chosenFile(file), key: composed.key, altText: composed.altText };
}

/** Returns whether a file looks like the one that was chosen, so that its upload can continue with these bytes. */
export function hasSameFacts(composed: FileFacts, file: File): boolean {
  const { name, size, modifiedAt } = factsOf(file);
  return composed.name === name && composed.size === size && composed.modifiedAt === modifiedAt;
}

/** Returns what changes when the server has answered; null if it does not have the upload. */
export function outcomeOf(upload: CheckedUpload | null): Partial<ComposedFile> {
  if (upload === null) return { state: "interrupted", uploadId: null, share: 0 };
  if (upload.refusal) return { state: "failed", failure: `file.refusal.${upload.refusal}` };
  if (upload.state === "RECEIVING") return { state: "interrupted", share: upload.offset / upload.size };
  return { state: "ready", share: 1, isPicture: upload.isPicture };
}

/** Returns the kept files of a draft, which may be of another version of the client. Their uploads are to be checked. */
export function restoredFiles(kept: unknown): ComposedFile[] {
  return Array.isArray(kept) ? kept.filter(isComposedFile) : [];
}

function isComposedFile(value: unknown): value is ComposedFile {
  const { key, name, size, uploadId, altText, state } = Object(value);
  const hasTexts = [key, name, altText, state].every((each) => typeof each === "string");
  return hasTexts && typeof size === "number" && (uploadId === null || typeof uploadId === "string");
}

/** Returns the files to send; null while one of them is not ready, or is a picture without a description. */
export function readyFiles(files: readonly ComposedFile[]): ReadyFile[] | null {
  const sendable = sendableFiles(files);
  return sendable?.every(isReady) ? sendable : null;
}

/**
 * Returns the files of a message, some of which may still be on their way; null if one of them has failed, or is a
 * picture without a description.
 */
export function sendableFiles(files: readonly ComposedFile[]): MessageFile[] | null {
  const sendable: MessageFile[] = [];
  for (const { key, uploadId, isPicture, state, name, size, modifiedAt, ...file } of files) {
    const altText = file.altText.trim();
    const isDescribed = (altText !== "" || !isPicture) && altText.length <= LIMITS.altText;
    if (!isDescribed || state === "failed" || state === "interrupted") return null;
    const isSent = state === "ready" && uploadId !== null;
    sendable.push(isSent ? { uploadId, name, altText } : { key, uploadId, name, size, modifiedAt, altText });
  }
  return sendable;
}
