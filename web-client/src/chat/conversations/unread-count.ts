/** Counts the conversations that ask for the viewer's attention. */
import type { Conversation } from "./operations";

interface CountedConversation {
  topic: Pick<Conversation["topic"], "id" | "unreadCount" | "muted">;
}

/** Returns how many conversations have unread messages, without muted ones and the open one. */
export function unreadConversationCount(
  conversations: readonly CountedConversation[],
  openTopicId: string | null,
): number {
  return conversations.filter(
    ({ topic }) => topic.id !== openTopicId && topic.unreadCount > 0 && !topic.muted,
  ).length;
}
