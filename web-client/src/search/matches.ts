/** Results of a search, collected page by page. No function modifies its arguments. */
import type { MessageMatch, PostMatch, TopicMatch } from "./operations";

/** One result, the same for messages, posts and topics. */
export interface SearchMatch {
  id: string;
  /** When the message, the post or the topic was written. */
  timestamp: string;
  /** Null for a topic. */
  author: MessageMatch["message"]["author"] | null;
  excerpt: MessageMatch["excerpt"];
  /** The topic, or that of a message; null for a post. */
  topic: MessageMatch["topic"] | null;
  stamp: MessageMatch["message"]["stamp"];
  editedAt: string | null;
  deletedAt: string | null;
}

export interface SearchMatchPage {
  items: readonly SearchMatch[];
  hasOlder: boolean;
  oldest: string | null;
  searchedTo: string | null;
}

export interface SearchMatches {
  items: readonly SearchMatch[];
  /** The upper bound of the next page; null if there is none. */
  next: string | null;
  /** Whether the next page continues a search that stopped early. */
  isIncomplete: boolean;
}

export function messageMatch({ message, topic, excerpt }: MessageMatch): SearchMatch {
  return { ...message, topic, excerpt };
}

export function postMatch({ post, excerpt }: PostMatch): SearchMatch {
  return { ...post, excerpt, topic: null, stamp: null, deletedAt: null };
}

export function topicMatch({ topic, excerpt }: TopicMatch): SearchMatch {
  const timestamp = (Date.parse(topic.createdAt) / 1000).toFixed(6);
  return {
    id: topic.id,
    timestamp,
    topic,
    excerpt,
    author: null,
    stamp: null,
    editedAt: null,
    deletedAt: null,
  };
}

/**
 * Returns the results with the next page at their end. A page begins with the results of the timestamp at which the
 * page before ended, which are left out.
 */
export function withMatchPage(matches: SearchMatches | null, page: SearchMatchPage): SearchMatches {
  const known = new Set(matches?.items.map(({ id }) => id));
  const items = [...(matches?.items ?? []), ...page.items.filter(({ id }) => !known.has(id))];
  const hasNew = items.length > (matches?.items.length ?? 0);
  const next = page.searchedTo ?? (page.hasOlder && hasNew ? page.oldest : null);
  return { items, next, isIncomplete: page.searchedTo !== null };
}

export const SEARCH_KINDS = ["messages", "posts", "topics", "people"] as const;

export type SearchKind = (typeof SEARCH_KINDS)[number];

/** The operators that the screen offers, by kind of result. */
export const OPERATORS = {
  messages: ["from:", "in:", "has:link", "has:stamp", "has:file", "after:", "before:"],
  posts: ["from:", "has:link", "has:media", "after:", "before:"],
  topics: ["in:", "after:", "before:"],
  people: ["in:"],
} as const;

/** Returns the query with an operator at its end. A day is the value of `after:` and `before:`. */
export function withOperator(query: string, operator: string, day: string): string {
  const value = operator === "after:" || operator === "before:" ? `${operator}${day}` : operator;
  return `${query.trim()} ${value}`.trim();
}
