/** A quoted message inside of a message, as a link to it. */
import { useCurrent } from "../../api/current-text";
import { hrefOf } from "../../app/router";
import { useTranslation } from "../../ui/preferences";
import { contentOf } from "../messages/message-content";
import type { Message, QuotedMessage } from "../operations";

const CLASS = "mt-1.5 mb-1 block max-w-full border-l-4 border-line bg-well px-3 py-1.5 text-sm";

export function QuoteBlock({ quote }: { quote: NonNullable<Message["quote"]> }) {
  const { t } = useTranslation();
  const { message } = quote;
  if (!message)
    return (
      <p data-testid="quote" className={`${CLASS} text-quiet italic`}>
        {t("quote.unavailable")}
      </p>
    );
  return (
    <a
      href={hrefOf({ name: "topic", id: message.topicId, at: message.timestamp })}
      data-testid="quote"
      className={`${CLASS} hover:bg-hover`}
    >
      <QuoteContent message={message} />
    </a>
  );
}

/** The author and up to three lines of a quoted message. */
export function QuoteContent({ message: quoted }: { message: QuotedMessage }) {
  const { t } = useTranslation();
  const message = useCurrent(quoted);
  return (
    <>
      <span className="block truncate font-semibold">
        <span className="sr-only">{t("quote.label")} </span>
        {message.author.name}
      </span>
      <span className={`line-clamp-3 whitespace-pre-wrap text-quiet ${message.deletedAt ? "italic" : ""}`}>
        {contentOf(message, t)}
      </span>
    </>
  );
}
