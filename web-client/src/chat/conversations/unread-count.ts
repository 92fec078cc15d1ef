/** Counts the conversations that ask for the viewer's attention. */
import type { Conversation } from "./operations";

type CountedConversation = Pick<Conversation, "id"> & {
  topic: Pick<Conversation["topic"], "unreadCount" | "muted">;
};

/** Returns how many conversations have unread messages, without muted ones and the open one. */
export function unreadConversationCount(
  conversations: readonly CountedConversation[],
  openId: string | null,
): number {
  return conversations.filter(({ id, topic }) => id !== openId && topic.unreadCount > 0 && !topic.muted)
    .length;
}
