/** The files of a post that is copied. A file is in one post only, unless it is in its owner's library. */
import { isRetryable } from "../../api/failure";
import type { Attachment } from "../../files/operations";

export interface CopiedFiles {
  copiedFiles: Attachment[];
  /** Names of the files that were deleted, belong to somebody else, or do not fit in the library. */
  missingFiles: string[];
}

/**
 * Puts the files into the viewer's library, so that they can be attached again. Returns those that can. Throws:
 * CombinedError if the server does not answer now.
 */
export async function copyFiles(
  files: readonly Attachment[],
  keep: (file: Attachment) => Promise<unknown>,
): Promise<CopiedFiles> {
  const outcomes = await Promise.allSettled(files.map(keep));
  for (const outcome of outcomes)
    if (outcome.status === "rejected" && isRetryable(outcome.reason)) throw outcome.reason;
  const isKept = (_: Attachment, index: number) => outcomes[index]?.status === "fulfilled";
  return {
    copiedFiles: files.filter(isKept),
    missingFiles: files.filter((file, index) => !isKept(file, index)).map(({ name }) => name),
  };
}
