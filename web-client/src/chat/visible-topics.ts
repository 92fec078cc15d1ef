/** Chooses which communities are subscribed to, and which of a community's topics are shown. */
import { compare } from "../timeline/window";
import type { TopicRow } from "./operations";

const FIRST_TOPICS = 30;

/** One further page of topics. */
export interface TopicPage {
  hasOlder: boolean;
  items: readonly TopicRow[];
}

/** A socket allows 50 subscriptions; the rest is for the topic, the feed, notifications and jobs. */
const SUBSCRIBED_MAX = 40;

/** Adds a community that became visible to the subscribed ones, and drops the oldest. */
export function withSubscribed(
  subscribed: readonly string[],
  id: string,
  most = SUBSCRIBED_MAX,
): readonly string[] {
  return [id, ...subscribed.filter((each) => each !== id)].slice(0, most);
}

/** Returns the topics to show, the most recently active first and without duplicates, and whether there are more. */
export function visibleTopics(first: readonly TopicRow[], pages: readonly TopicPage[]) {
  const topicsById = new Map(
    [...first, ...pages.flatMap(({ items }) => items)].map((topic) => [topic.id, topic]),
  );
  const topics = [...topicsById.values()].sort((a, b) => compare(b.lastActivity, a.lastActivity));
  const last = pages.at(-1);
  if (last) return { topics, more: last.hasOlder };
  return { topics: topics.slice(0, FIRST_TOPICS), more: topics.length > FIRST_TOPICS };
}
