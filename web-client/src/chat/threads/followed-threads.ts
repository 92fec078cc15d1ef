/** The threads that the viewer follows, kept up to date by notifications and read marks through the cache. */
import { useQuery } from "urql";
import type { ResultOf } from "../../api/graphql";
import { hrefOf } from "../../app/router";
import { FollowedThreads } from "./operations";

export const FOLLOWED_PAGE_SIZE = 50;

export type FollowedThread = ResultOf<typeof FollowedThreads>["followedThreads"]["items"][number];

/** Returns the most recently active followed threads; none until they are loaded. */
export function useFollowedThreads(limit: number) {
  const [{ data, error }, load] = useQuery({
    query: FollowedThreads,
    variables: { limit },
    requestPolicy: "cache-and-network",
  });
  const page = data?.followedThreads;
  return {
    threads: page?.items,
    hasMore: page?.hasOlder ?? false,
    error,
    reload: () => load({ requestPolicy: "network-only" }),
  };
}

/** Returns the link to the topic of the thread, with the thread open. */
export function hrefOfThread({ thread, parentTopic }: FollowedThread): string {
  return hrefOf({ name: "topic", id: parentTopic.id, at: null, thread: thread.parentMessageId ?? "" });
}
