/**
 * The texts that changed while the client runs: edited and deleted messages and posts. Each answer and each event
 * passes the exchange, so all lists, quotes and previews know of a change, whichever subscription or action brought it.
 */
import { type Exchange, mapExchange } from "urql";
import { createValue, type ObservableValue } from "../ui/value";

/** The content of a message or a post after its last change. Content that the change did not report is absent. */
export interface TextChange {
  text: string;
  editedAt: string | null;
  deletedAt: string | null;
  mentions?: readonly { id: string; handle: string; name: string }[];
  stamp?: null;
  attachments?: readonly never[];
  linkPreview?: null;
}

/** Changes by the id of the message or post. */
export type TextChanges = Readonly<Record<string, TextChange>>;

/** A message or a post as it was loaded. */
export interface LoadedText {
  id: string;
  editedAt?: string | null;
  deletedAt?: string | null;
}

const CONTENT = ["text", "mentions", "stamp", "attachments", "linkPreview"] as const;
const EVENTS = ["MessageEdited", "MessageDeleted"];
const MUTATIONS = ["editMessage", "deleteMessage", "editPost"];
/** The beginning of the names by which messages are read again (current-text.ts). */
const READ_AGAIN = "currentText";

interface RootValue extends LoadedText {
  __typename?: string;
  message?: LoadedText;
  postId?: string;
}

/** Returns the item as it is now: with its change, unless the item was loaded after the change. */
export function withChange<Item extends LoadedText>(
  item: Item,
  changes: TextChanges,
): Item & { deletedAt?: string | null } {
  const change = changes[item.id];
  return change && isNewer(change, item) ? { ...item, ...change } : item;
}

/** Returns the changes with those that the data of an answer or event reports; the same object without any. */
export function withReported(changes: TextChanges, data: unknown): TextChanges {
  const roots = Object.entries((data ?? {}) as Record<string, RootValue | null>);
  const reported = roots.flatMap(([field, value]) => (value && changedText(field, value)) || []);
  const news = reported.filter(({ id, change }) => !changes[id] || isNewer(change, changes[id]));
  if (news.length === 0) return changes;
  return { ...changes, ...Object.fromEntries(news.map(({ id, change }) => [id, change])) };
}

function changedText(field: string, value: RootValue): { id: string; change: TextChange } | null {
  if (value.message && EVENTS.includes(value.__typename ?? "")) return contentOf(value.message);
  if (MUTATIONS.includes(field) || field.startsWith(READ_AGAIN)) return contentOf(value);
  const deletedPostId = field === "deletePost" ? value.id : value.postId;
  if (!deletedPostId || (field !== "deletePost" && value.__typename !== "PostRemoved")) return null;
  const deletedAt = new Date().toISOString();
  return { id: deletedPostId, change: { text: "", editedAt: null, deletedAt } };
}

function contentOf(changed: LoadedText): { id: string; change: TextChange } {
  const content = Object.fromEntries(
    Object.entries(changed).filter(([name]) => (CONTENT as readonly string[]).includes(name)),
  ) as unknown as TextChange;
  const { id, editedAt = null, deletedAt = null } = changed;
  return { id, change: { ...content, editedAt, deletedAt } };
}

/** Times in RFC 3339 of the server, all in UTC, compare as texts. A deletion is final. */
function isNewer(change: TextChange, other: Omit<LoadedText, "id">): boolean {
  if (change.deletedAt || other.deletedAt) return !other.deletedAt;
  return (change.editedAt ?? "") > (other.editedAt ?? "");
}

/** Returns the changes, and the exchange that collects them. It must stand behind a cache, at the network. */
export function collectTextChanges(): { changes: ObservableValue<TextChanges>; exchange: Exchange } {
  const changes = createValue<TextChanges>({});
  const exchange = mapExchange({ onResult: ({ data }) => changes.set(withReported(changes.get(), data)) });
  return { changes, exchange };
}
