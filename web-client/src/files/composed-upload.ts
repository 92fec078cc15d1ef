/** Uploads of composed files, which continue where the server has stopped to receive them. */
import type { Client } from "urql";
import { errorCode } from "../api/failure";
import { FileFailure, outcomeOf, type UnsentFile } from "./composed-file";
import { findBytes, forgetStoredBytes } from "./kept-bytes";
import type { CheckedUpload } from "./operations";
import { continueUpload, uploadFile } from "./upload";

type Options = Omit<Parameters<typeof uploadFile>[2], "purpose">;

/**
 * Sends a composed file, or the rest of it. Returns the upload when it is checked; null if the server does not have it,
 * and the bytes are lost. Throws as `uploadFile` does.
 */
export async function sendComposed(
  client: Client,
  owner: string,
  composed: UnsentFile,
  options: Options,
): Promise<CheckedUpload | null> {
  const upload = await send(client, owner, composed, { ...options, purpose: "ATTACHMENT" });
  if (upload?.state === "READY") void forgetStoredBytes(owner, composed.key);
  return upload;
}

async function send(
  client: Client,
  owner: string,
  composed: UnsentFile,
  options: Options & { purpose: "ATTACHMENT" },
): Promise<CheckedUpload | null> {
  const file = await findBytes(owner, composed);
  if (composed.uploadId !== null)
    try {
      return await continueUpload(client, composed.uploadId, file ?? null, options);
    } catch (error) {
      if (errorCode(error) !== "NOT_FOUND") throw error;
    }
  return file ? await uploadFile(client, file, options) : null;
}

/** Sends a file of a message. Returns its id. Throws as `uploadFile` does, and FileFailure. */
export async function sendFileOfMessage(
  client: Client,
  owner: string,
  file: UnsentFile,
  options: Options,
): Promise<string> {
  const upload = await sendComposed(client, owner, file, options);
  const { state, failure } = outcomeOf(upload);
  if (state === "interrupted") throw new FileFailure("file.gone");
  if (failure) throw new FileFailure(failure);
  return upload?.fileId ?? "";
}
