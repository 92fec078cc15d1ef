/** The number of conversations and requests with unread messages, kept up to date by events on every screen. */
import { useEffect, useSyncExternalStore } from "react";
import { subscribe, useApi } from "../../api/api";
import { useRoute } from "../../app/router";
import { createValue } from "../../ui/value";
import { type Conversation, ConversationEvents } from "./operations";
import { unreadConversationCount } from "./unread-count";
import { reloadConversations, useConversations } from "./use-conversations";

/** The newest event of a conversation that the viewer has not left. */
export const changedConversation = createValue<{ at: string; conversation: Conversation } | null>(null);

/** Follows all conversations. Use it once: it subscribes to the changes, which update the cache. */
export function useUnreadConversations(): number {
  const { cached } = useApi();
  const route = useRoute();
  const isVisible = useIsVisible();
  const { conversations: joined = [] } = useConversations("JOINED");
  const { conversations: requested = [] } = useConversations("REQUESTED");
  useEffect(
    () =>
      subscribe(cached, ConversationEvents, {}, ({ conversationEvents: event }) => {
        // Events may be missing.
        if (event.__typename === "StreamReady" && !event.resumed) reloadConversations();
        if (event.__typename === "ConversationChanged" && event.conversation)
          changedConversation.set({ at: event.at, conversation: event.conversation });
      }),
    [cached],
  );
  // In a hidden tab, the open conversation counts as well.
  const openTopicId = isVisible && route.name === "topic" ? route.id : null;
  const count = unreadConversationCount([...joined, ...requested], openTopicId);
  // Conversations may have been read in another tab or on another device, which sends no event.
  // biome-ignore lint/correctness/useExhaustiveDependencies: loads only when the tab becomes visible.
  useEffect(() => {
    if (isVisible && count > 0) reloadConversations();
  }, [isVisible]);
  return count;
}

function watchVisibility(listener: () => void): () => void {
  document.addEventListener("visibilitychange", listener);
  return () => document.removeEventListener("visibilitychange", listener);
}

function useIsVisible(): boolean {
  return useSyncExternalStore(watchVisibility, () => document.visibilityState === "visible");
}
