/**
 * Texts that a user typed and the server does not have yet, in the browser's local storage: drafts, and messages that
 * wait for the connection. Every entry belongs to one user, and is removed after 14 days or when the user signs out.
 */
import { createContext, useContext } from "react";

const PREFIX = "noroshi.typed.";
const KEPT_MS = 14 * 86_400_000;
const ENTRY_MAX_CHARS = 100_000;
const DRAFTS_MAX = 50;

export interface UserStorage {
  /** The identity of the user to whom the entries belong. */
  owner: string;
  /** Returns the entry's value; null if there is none. */
  get(name: string): unknown;
  set(name: string, value: unknown): void;
  remove(name: string): void;
  /** Returns the names of the entries that begin with a prefix, oldest first. */
  names(prefix: string): string[];
  /** Removes all entries of the user. */
  clear(): void;
}

interface StorageEntry {
  name: string;
  at: number;
  value: unknown;
}

/** Opens the entries of the user with this identity, and removes expired entries of all users. Values are JSON. */
export function createUserStorage(storage: Storage, identity: string, now = Date.now): UserStorage {
  const prefix = `${PREFIX}${identity} `;
  const keys = (start: string) =>
    Array.from({ length: storage.length }, (_, index) => storage.key(index) ?? "").filter((key) =>
      key.startsWith(start),
    );

  function read(key: string): StorageEntry | null {
    const { at, value } = parseObject(storage.getItem(key));
    const isKept = typeof at === "number" && now() - at < KEPT_MS;
    return isKept ? { name: key.slice(prefix.length), at, value } : null;
  }

  function names(start: string): string[] {
    const entries = keys(prefix + start).flatMap((key) => read(key) ?? []);
    return entries.sort((a, b) => a.at - b.at).map(({ name }) => name);
  }

  function write(key: string, value: unknown): void {
    const text = JSON.stringify({ at: now(), value });
    try {
      if (text.length > ENTRY_MAX_CHARS) storage.removeItem(key);
      else storage.setItem(key, text);
    } catch {
      // The browser's storage is full. The text stays in its field.
    }
  }

  for (const key of keys(PREFIX)) if (read(key) === null) storage.removeItem(key);
  return {
    owner: identity,
    get: (name) => read(prefix + name)?.value ?? null,
    set(name, value) {
      write(prefix + name, value);
      for (const draft of names(DRAFT).slice(0, -DRAFTS_MAX)) storage.removeItem(prefix + draft);
    },
    remove: (name) => storage.removeItem(prefix + name),
    names,
    clear() {
      for (const key of keys(prefix)) storage.removeItem(key);
    },
  };
}

/** The prefix of the names of drafts. Their number is limited; the number of other entries is not. */
export const DRAFT = "draft ";

function parseObject(text: string | null): Record<string, unknown> {
  try {
    return Object(JSON.parse(text ?? "null"));
  } catch {
    return {};
  }
}

const UserStorageContext = createContext<UserStorage | null>(null);
export const UserStorageProvider = UserStorageContext.Provider;

export function useUserStorage(): UserStorage {
  const storage = useContext(UserStorageContext);
  if (storage === null) throw new Error("There is no UserStorageProvider above this component.");
  return storage;
}
