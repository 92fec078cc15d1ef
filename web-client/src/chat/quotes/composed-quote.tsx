/** The message that the message field will quote, with a button that removes the quote. */
import { IconButton } from "../../ui/button";
import { useTranslation } from "../../ui/preferences";
import type { QuotedMessage } from "../operations";
import { QuoteContent } from "./quote-block";

export function ComposedQuote({ message, onRemove }: { message: QuotedMessage; onRemove: () => void }) {
  const { t } = useTranslation();
  return (
    <div
      data-testid="composed-quote"
      className="mb-1 flex items-start gap-2 border-l-4 border-accent bg-well py-1 pl-3 text-sm"
    >
      <div className="min-w-0 grow">
        <QuoteContent message={message} />
      </div>
      <IconButton icon="close" size="size-8" label={t("quote.remove")} onClick={onRemove} />
    </div>
  );
}
