/** Names of threads in lists: the message to which people reply, and its place. */
import type { Translate } from "../../ui/preferences";
import { contentOf } from "../messages/message-content";

const NAME_MAX_CHARS = 60;

type ParentMessage = Parameters<typeof contentOf>[0] & { author: { name: string } };

/** Returns the author and the content of the parent message; a note for a message that the viewer may not see. */
export function parentText(message: ParentMessage | null | undefined, t: Translate): string {
  return message ? `${message.author.name}: ${contentOf(message, t)}` : t("threads.hiddenParent");
}

/** Returns the names of a topic and its community, or the name of a conversation. */
export function placeText(
  { title, community }: { title: string; community: { name: string } },
  t: Translate,
): string {
  if (!title) return t("conversations");
  return community.name === title ? title : `${community.name} · ${title}`;
}

/** Returns the name of a thread with the start of its parent message. */
export function threadName(message: ParentMessage, t: Translate): string {
  const content = [...contentOf(message, t)];
  const isLong = content.length > NAME_MAX_CHARS;
  return t("thread.name", {
    text: isLong ? `${content.slice(0, NAME_MAX_CHARS).join("")}…` : content.join(""),
  });
}
