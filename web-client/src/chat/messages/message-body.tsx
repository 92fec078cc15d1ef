/** The content of a message: text, stamp, files and link preview. */
import { AttachmentList } from "../../files/attachment-list";
import { StampImage } from "../../stamps/stamp-image";
import { useTranslation } from "../../ui/preferences";
import { LinkPreviewCard } from "../../ui/text/link-preview";
import { RichText } from "../../ui/text/rich-text";
import type { Message } from "../operations";
import { QuoteBlock } from "../quotes/quote-block";

export function MessageBody({ message }: { message: Message }) {
  const { t } = useTranslation();
  return (
    <>
      {message.quote && <QuoteBlock quote={message.quote} />}
      {message.text && (
        <RichText
          text={message.text}
          mentions={message.mentions}
          tail={message.editedAt && <span className="ml-1.5 text-xs text-quiet">{t("message.edited")}</span>}
        />
      )}
      {message.stamp && (
        <StampImage path={message.stamp.imageUrl} name={message.stamp.name} className="my-1 size-24" />
      )}
      {message.attachments.length > 0 && <AttachmentList attachments={message.attachments} />}
      {message.linkPreview && <LinkPreviewCard preview={message.linkPreview} />}
    </>
  );
}
