/** The viewer's conversations, most recently active first. Further pages load on request; events update all pages. */
import { useCallback, useEffect, useState } from "react";
import type { CombinedError } from "urql";
import { request, useApi } from "../../api/api";
import { compareTimestamps } from "../../timeline/window";
import { notifyFailure } from "../../ui/toasts";
import { createValue } from "../../ui/value";
import {
  CONVERSATIONS_PAGE_SIZE,
  type Conversation,
  type ConversationPage,
  type ConversationState,
  Conversations,
} from "./operations";

const FIRST_PAGE = "now";

/** How often all lists were loaded again. */
const reloadCount = createValue(0);

/** Loads the first pages of all lists again, for example because events may be missing. */
export function reloadConversations(): void {
  reloadCount.set(reloadCount.get() + 1);
}

export interface ConversationList {
  /** Undefined until the first page is loaded. */
  conversations: readonly Conversation[] | undefined;
  hasMore: boolean;
  error: CombinedError | undefined;
  loadMore: () => void;
  reload: () => void;
}

/** Follows the conversations in which the viewer has this state. */
export function useConversations(state: ConversationState): ConversationList {
  const { cached } = useApi();
  const [pageStarts, setPageStarts] = useState<readonly string[]>([FIRST_PAGE]);
  const [pages, setPages] = useState<Readonly<Record<string, ConversationPage>>>({});
  const [error, setError] = useState<CombinedError>();

  useEffect(() => {
    const stops = pageStarts.map((latest) => {
      const variables = { state, latest, limit: CONVERSATIONS_PAGE_SIZE };
      const { unsubscribe } = cached
        .query(Conversations, variables, { requestPolicy: "cache-and-network" })
        .subscribe((answer) => {
          setError(answer.error);
          const page = answer.data?.conversations;
          if (page) setPages((current) => ({ ...current, [latest]: page }));
        });
      return unsubscribe;
    });
    return () => {
      for (const stop of stops) stop();
    };
  }, [cached, state, pageStarts]);

  const loaded = pageStarts.flatMap((latest) => pages[latest] ?? []);
  const { conversations, hasMore } = merge(loaded, state);
  function loadMore() {
    const last = conversations.at(-1);
    if (last) setPageStarts((current) => [...new Set([...current, last.topic.lastActivity])]);
  }
  const reload = useCallback(() => {
    setPageStarts([FIRST_PAGE]);
    const variables = { state, latest: FIRST_PAGE, limit: CONVERSATIONS_PAGE_SIZE };
    request(cached, Conversations, variables).catch(notifyFailure);
  }, [cached, state]);
  useEffect(() => reloadCount.watch(reload), [reload]);
  return { conversations: loaded.length === 0 ? undefined : conversations, hasMore, error, loadMore, reload };
}

/** Returns the conversations of the pages without duplicates, and without those whose state has changed. */
function merge(pages: readonly ConversationPage[], state: ConversationState) {
  const byId = new Map(pages.flatMap(({ items }) => items).map((each) => [each.id, each]));
  const conversations = [...byId.values()]
    .filter((each) => each.state === state)
    .sort((a, b) => compareTimestamps(b.topic.lastActivity, a.topic.lastActivity));
  return { conversations, hasMore: pages.at(-1)?.hasOlder ?? false };
}
