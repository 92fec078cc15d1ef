/**
 * Messages that are not sent yet, in the browser's storage, so that a reload does not lose them. Each is sent by one
 * tab: the tab that holds its lock. The browser frees the locks of a tab that is closed, and another tab takes over.
 */
import type { MessageFile } from "../../files/composed-file";
import type { UserStorage } from "../../session/user-storage";
import type { QuotedMessage, Stamp } from "../operations";

/** Other places and messages to which a message refers. */
export interface MessageReferences {
  /** Id of the message whose thread this message starts; absent for other messages. */
  replyTo?: string | undefined;
  /** The quoted message; absent without a quote. */
  quoted?: QuotedMessage | undefined;
  /** Whether a reply is also sent to the topic of its thread; absent for no. */
  alsoToTopic?: boolean | undefined;
}

export interface UnsentMessage extends MessageReferences {
  /** The idempotency key. */
  key: string;
  topicId: string;
  text: string;
  stamp: Stamp | null;
  /** The files, some of which may still have to be uploaded; absent in messages of an earlier version of the client. */
  files?: readonly MessageFile[];
  /** Milliseconds since the Unix epoch. */
  writtenAt: number;
  /** Whether the server refused the message, so that it waits for the user. */
  hasFailed: boolean;
}

export interface UnsentMessageStore {
  keep(message: UnsentMessage): void;
  get(key: string): UnsentMessage | null;
  remove(key: string): void;
  /** Returns the keys of all messages, oldest first. */
  keys(): string[];
  /** Calls the listener when another tab has changed messages. Ends with the signal. */
  watch(listener: () => void, signal: AbortSignal): void;
  /** Resolves when this tab is the only tab that may send the message. The signal ends the claim. */
  claim(key: string, signal: AbortSignal): Promise<void>;
}

const PREFIX = "message ";

export function createUnsentMessageStore(storage: UserStorage): UnsentMessageStore {
  return {
    keep: (message) => storage.set(PREFIX + message.key, message),
    get: (key) => storage.get(PREFIX + key) as UnsentMessage | null,
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
