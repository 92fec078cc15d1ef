/** The outbox of the browser's user, which uses the API, the browser's storage and the connection. */
import { type Api, request } from "../../api/api";
import { connectionReturns } from "../../api/connection";
import { retryAfterMs } from "../../api/failure";
import { isReady } from "../../files/composed-file";
import { sendFileOfMessage } from "../../files/composed-upload";
import { forgetBytes } from "../../files/kept-bytes";
import type { UserStorage } from "../../session/user-storage";
import { PostMessage } from "../operations";
import { createOutboxWith, type Outbox } from "./outbox";
import { createUnsentMessageStore } from "./unsent-messages";

export function createOutbox(api: Api, storage: UserStorage): Outbox {
  return createOutboxWith({
    post: async ({ topicId, replyTo, quoted, alsoToTopic, text, stamp, key, files = [] }) => {
      const attachments = files.filter(isReady).map(({ uploadId, altText }) => ({ uploadId, altText }));
      const stampId = stamp?.id ?? null;
      const quotedMessageId = quoted?.id;
      const content = { text, stampId, attachments, quotedMessageId };
      const input = { topicId, replyTo, alsoToTopic, ...content, idempotencyKey: key };
      return (await request(api.direct, PostMessage, { input })).postMessage;
    },
    upload: (file, signal, onCreated) =>
      sendFileOfMessage(api.direct, storage.owner, file, { signal, onCreated, onProgress: () => {} }),
    forget: ({ key }) => forgetBytes(storage.owner, key),
    waitForRetry: (error) => {
      const waitMs = retryAfterMs(error);
      return waitMs === null ? connectionReturns(api.connection) : sleep(waitMs);
    },
    unsent: createUnsentMessageStore(storage),
    now: Date.now,
  });
}

function sleep(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
