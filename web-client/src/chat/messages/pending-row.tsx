/** A pending message with its sending state. */

import { isReady } from "../../files/composed-file";
import type { TextKey } from "../../i18n/texts";
import type { ViewerUser } from "../../session/viewer";
import { StampImage } from "../../stamps/stamp-image";
import { Avatar } from "../../ui/avatar";
import { Icon } from "../../ui/icons";
import { useTranslation } from "../../ui/preferences";
import { RichText } from "../../ui/text/rich-text";
import { type PendingMessage, useOutbox } from "../composer/outbox";
import { QuoteBlock } from "../quotes/quote-block";

function stateTextKey({ state, reason }: PendingMessage): TextKey {
  if (state === "sending") return "message.sending";
  if (state === "failed") return "message.notSent";
  return reason ?? "message.waiting";
}

export function PendingMessageRow({ entry, viewer }: { entry: PendingMessage; viewer: ViewerUser }) {
  const { t } = useTranslation();
  const outbox = useOutbox();
  const hasFailed = entry.state === "failed";
  return (
    <article
      aria-label={t(stateTextKey(entry))}
      data-pending={entry.state}
      className="mx-1 mt-2 flex gap-3 px-3 py-1 sm:mx-2"
    >
      <Avatar user={viewer} />
      <div className="min-w-0 max-w-3xl grow">
        <p className="flex items-baseline gap-2">
          <span className="font-semibold">{viewer.name}</span>
          <span className={`flex items-center gap-1 text-xs ${hasFailed ? "text-bad" : "text-quiet"}`}>
            {entry.state === "waiting" && <Icon name="clock" className="size-3.5" />}
            {t(stateTextKey(entry))}
          </span>
        </p>
        {entry.quoted && <QuoteBlock quote={{ message: entry.quoted }} />}
        {entry.text && (
          <div className="text-quiet">
            <RichText text={entry.text} mentions={[]} />
          </div>
        )}
        {entry.files?.map((file) => (
          <p key={isReady(file) ? file.uploadId : file.key} className="flex items-center gap-2 text-quiet">
            <Icon name="file" className="size-4" />
            <span className="truncate">{file.name}</span>
          </p>
        ))}
        {entry.stamp && (
          <StampImage path={entry.stamp.imageUrl} name={entry.stamp.name} className="my-1 size-24" />
        )}
        {hasFailed && (
          <p className="flex flex-wrap items-center gap-3 text-sm">
            {entry.reason && <span className="text-bad">{t(entry.reason)}</span>}
            <button type="button" className="text-accent underline" onClick={() => outbox.retry(entry.key)}>
              {t("tryAgain")}
            </button>
            <button type="button" className="text-accent underline" onClick={() => outbox.discard(entry.key)}>
              {t("discard")}
            </button>
          </p>
        )}
      </div>
    </article>
  );
}
