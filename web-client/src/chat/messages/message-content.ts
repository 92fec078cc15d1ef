/** The content of a message in one line, for lists and quotes. */
import type { Translate } from "../../ui/preferences";
import { plainText } from "../../ui/text/formatting";

interface MessageContent {
  text: string;
  deletedAt?: unknown;
  stamp: { name: string } | null;
  attachments: readonly { name: string }[];
}

/** Returns the text, or what the message has instead: a note that it was deleted, its stamp, or its first file. */
export function contentOf({ text, deletedAt, stamp, attachments }: MessageContent, t: Translate): string {
  if (deletedAt) return t("message.deleted");
  return plainText(text) || stamp?.name || attachments[0]?.name || "…";
}
