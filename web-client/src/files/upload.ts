/** Uploads of files: sends the bytes with progress, continues after a lost connection, and waits for the check. */
import type { Client } from "urql";
import { request } from "../api/api";
import { requestHeaders } from "../session/identity";
import { token } from "../session/session";
import { type CheckedUpload, CreateUpload, UploadById, type UploadPurpose } from "./operations";
import { nextOffset, retryDelayMs } from "./upload-retry";

const POLL_MS = 400;
const MAX_NAME_CHARS = 255;

interface UploadOptions {
  purpose: UploadPurpose;
  signal: AbortSignal;
  /** Called with the id of the file when the server has created the upload. */
  onCreated?: (id: string) => void;
  /** Called with the share of the bytes that the server has, from 0 to 1. */
  onProgress: (share: number) => void;
}

/** Uploads a file and returns it READY or REFUSED. Throws: CombinedError, UploadError, or the signal's reason. */
export async function uploadFile(client: Client, file: File, options: UploadOptions): Promise<CheckedUpload> {
  const { purpose, signal, onCreated } = options;
  const fileName = [...file.name].slice(-MAX_NAME_CHARS).join("") || "file";
  const { createUpload } = await request(client, CreateUpload, { fileName, size: file.size, purpose });
  onCreated?.(createUpload.fileId);
  await sendBytes(createUpload.url, file, 0, options);
  return await checkedUpload(client, createUpload.fileId, signal);
}

/**
 * Continues an upload with the bytes that the server does not have, and returns it as `uploadFile` does. Without a file,
 * returns an upload of which bytes are missing as it is.
 */
export async function continueUpload(
  client: Client,
  id: string,
  file: File | null,
  options: UploadOptions,
): Promise<CheckedUpload> {
  const { upload } = await request(client, UploadById, { id });
  if (upload?.state === "RECEIVING") {
    if (file === null) return upload;
    await sendBytes(upload.url, file, upload.offset, options);
  }
  return upload && isChecked(upload) ? upload : await checkedUpload(client, id, options.signal);
}

async function checkedUpload(client: Client, id: string, signal: AbortSignal): Promise<CheckedUpload> {
  for (;;) {
    signal.throwIfAborted();
    const { upload } = await request(client, UploadById, { id });
    if (upload && isChecked(upload)) return upload;
    await pause(POLL_MS, signal);
  }
}

const isChecked = ({ state }: CheckedUpload) => state === "READY" || state === "REFUSED";

/** The server refuses the bytes, or can't be reached for some seconds. */
export class UploadError extends Error {
  constructor(readonly networkError: boolean) {
    super(networkError ? "The server was not reached." : "The server refused the bytes.");
  }
}

async function sendBytes(
  url: string,
  file: File,
  start: number,
  { signal, onProgress }: UploadOptions,
): Promise<void> {
  let offset = start;
  let failures = 0;
  while (offset < file.size) {
    signal.throwIfAborted();
    const before = offset;
    const { status, storedOffset } = await put(url, file, offset, signal, onProgress);
    offset = nextOffset(status, storedOffset) ?? (await askOffset(url)) ?? offset;
    failures = offset > before ? 0 : failures + 1;
    if (status !== 0) onProgress(offset / file.size);
    if (offset > before) continue;
    const delay = retryDelayMs(status, failures);
    if (delay === null) throw new UploadError(status === 0);
    await pause(delay, signal);
  }
}

interface UploadResponse {
  /** The status of the response; 0 if the connection was lost. */
  status: number;
  storedOffset: string | null;
}

function put(
  url: string,
  file: File,
  offset: number,
  signal: AbortSignal,
  onProgress: (share: number) => void,
): Promise<UploadResponse> {
  return new Promise((resolve) => {
    const sender = new XMLHttpRequest();
    const abort = () => sender.abort();
    sender.open("PUT", url);
    for (const [name, value] of headers()) sender.setRequestHeader(name, value);
    sender.setRequestHeader("Upload-Offset", String(offset));
    sender.upload.onprogress = ({ loaded }) => onProgress(Math.min((offset + loaded) / file.size, 1));
    sender.onloadend = () => {
      signal.removeEventListener("abort", abort);
      resolve({ status: sender.status, storedOffset: sender.getResponseHeader("Upload-Offset") });
    };
    signal.addEventListener("abort", abort);
    sender.send(file.slice(offset));
  });
}

/** Asks how many bytes the server has; null if it does not answer. */
async function askOffset(url: string): Promise<number | null> {
  try {
    const response = await fetch(url, { method: "HEAD", headers: Object.fromEntries(headers()) });
    return nextOffset(response.ok ? 204 : response.status, response.headers.get("Upload-Offset"));
  } catch {
    return null;
  }
}

function headers(): [string, string][] {
  const credential = token.get();
  return credential === null ? [] : Object.entries(requestHeaders(credential));
}

function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const done = () => {
      clearTimeout(timer);
      signal.removeEventListener("abort", done);
      resolve();
    };
    const timer = setTimeout(done, ms);
    signal.addEventListener("abort", done);
  });
}

/** Deletes an upload that is not attached. If this fails, the server deletes it after a day. */
export function discardUpload(id: string): void {
  fetch(`/uploads/${id}`, { method: "DELETE", headers: Object.fromEntries(headers()) }).catch(() => {});
}
