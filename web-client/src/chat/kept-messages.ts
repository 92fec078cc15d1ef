/**
 * Messages that are not sent yet, in the browser's storage, so that a reload does not lose them. Each is sent by one
 * tab: the tab that holds its lock. The browser frees the locks of a tab that is closed, and another tab takes over.
 */
import type { UserStorage } from "../session/user-storage";
import type { Stamp } from "./operations";

export interface KeptMessage {
  /** The idempotency key. */
  key: string;
  topicId: string;
  text: string;
  stamp: Stamp | null;
  /** Milliseconds since the Unix epoch. */
  writtenAt: number;
  /** Whether the server refused the message, so that it waits for the user. */
  hasFailed: boolean;
}

export interface KeptMessages {
  keep(message: KeptMessage): void;
  get(key: string): KeptMessage | null;
  remove(key: string): void;
  /** Returns the keys of all messages, oldest first. */
  keys(): string[];
  /** Calls the listener when another tab has changed messages. Ends with the signal. */
  watch(listener: () => void, signal: AbortSignal): void;
  /** Resolves when this tab may send the message, which no other tab then does. The signal ends the claim. */
  claim(key: string, signal: AbortSignal): Promise<void>;
}

const PREFIX = "message ";

export function createKeptMessages(storage: UserStorage): KeptMessages {
  return {
    keep: (message) => storage.set(PREFIX + message.key, message),
    get: (key) => storage.get(PREFIX + key) as KeptMessage | null,
    remove: (key) => storage.remove(PREFIX + key),
    keys: () => storage.names(PREFIX).map((name) => name.slice(PREFIX.length)),
    watch: (listener, signal) => addEventListener("storage", listener, { signal }),
    claim: (key, signal) =>
      new Promise((resolve) => {
        const holdUntilEnd = () =>
          new Promise<void>((release) => {
            resolve();
            signal.addEventListener("abort", () => release());
          });
        // The request rejects when the signal aborts it. This tab then does not send the message.
        navigator.locks.request(`noroshi.message.${key}`, { signal }, holdUntilEnd).catch(() => {});
      }),
  };
}
