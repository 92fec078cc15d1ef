/** Chooses which communities are subscribed to, and which of a community's topics are shown. */
import { compareTimestamps } from "../../timeline/window";
import type { TopicRow } from "../operations";

const FIRST_TOPICS_SHOWN = 30;

/** One further page of topics. */
export interface TopicPage {
  hasOlder: boolean;
  items: readonly TopicRow[];
}

/** A socket allows 50 operations at a time. Ten are left for the topic, the feed, notifications and jobs. */
const SUBSCRIBED_MAX = 40;

/** Puts a community that became visible at the front of the list. Above the limit, drops communities at its end. */
export function withSubscribed(
  subscribed: readonly string[],
  id: string,
  maxCount = SUBSCRIBED_MAX,
): readonly string[] {
  return [id, ...subscribed.filter((each) => each !== id)].slice(0, maxCount);
}

/** Returns the archived communities to subscribe to: as many as the visible ones leave subscriptions for. */
export function followedArchives<Community>(
  archived: readonly Community[],
  subscribed: readonly string[],
  maxCount = SUBSCRIBED_MAX,
): readonly Community[] {
  return archived.slice(0, Math.max(0, maxCount - subscribed.length));
}

/**
 * Returns the topics to show, the most recently active first and without duplicates, and whether there are more.
 * Topics that were archived since they were loaded are left out.
 */
export function visibleTopics(firstTopics: readonly TopicRow[], pages: readonly TopicPage[]) {
  const topicsById = new Map(
    [...firstTopics, ...pages.flatMap(({ items }) => items)]
      .filter(({ archivedAt }) => !archivedAt)
      .map((topic) => [topic.id, topic]),
  );
  const topics = [...topicsById.values()].sort((a, b) => compareTimestamps(b.lastActivity, a.lastActivity));
  const lastPage = pages.at(-1);
  if (lastPage) return { topics, hasMore: lastPage.hasOlder };
  return { topics: topics.slice(0, FIRST_TOPICS_SHOWN), hasMore: topics.length > FIRST_TOPICS_SHOWN };
}
