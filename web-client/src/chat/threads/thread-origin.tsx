/** Tells of a message of a topic that it is a reply in a thread, and of a reply that it was also sent to the topic. */
import { useCurrent } from "../../api/current-text";
import { hrefOf } from "../../app/router";
import { useTranslation } from "../../ui/preferences";
import { contentOf } from "../messages/message-content";
import type { Message } from "../operations";

export function ThreadOrigin({ message }: { message: Message }) {
  const { t } = useTranslation();
  const { threadReply, alsoInTopic, topicId, timestamp } = message;
  const parent = useCurrent(threadReply?.parentMessage ?? null);
  if (alsoInTopic) return <p className="text-xs text-quiet">{t("thread.sentToTopic")}</p>;
  if (!threadReply) return null;
  const { threadId, message: reply } = threadReply;
  const href = parent
    ? hrefOf({ name: "topic", id: topicId, at: timestamp, thread: parent.id, reply: reply.timestamp })
    : hrefOf({ name: "topic", id: threadId, at: reply.timestamp });
  const text = parent ? contentOf(parent, t) : t("threads.hiddenParent");
  return (
    <a
      href={href}
      data-testid="thread-origin"
      className="block max-w-full truncate text-sm text-quiet hover:underline"
    >
      {t("thread.repliedTo", { text })}
    </a>
  );
}
