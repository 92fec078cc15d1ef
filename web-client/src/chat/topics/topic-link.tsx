/** A link to a topic or a conversation in the sidebar, with the last message and the number of unread ones. */
import { useCurrent } from "../../api/current-text";
import { hrefOf, useRoute } from "../../app/router";
import { useTranslation } from "../../ui/preferences";
import { contentOf } from "../messages/message-content";
import type { TopicRow } from "../operations";

export function TopicLink({ topic, title = topic.title }: { topic: TopicRow; title?: string }) {
  const { t } = useTranslation();
  const route = useRoute();
  const isCurrent = route.name === "topic" && route.id === topic.id;
  const unread = isCurrent ? 0 : topic.unreadCount;
  const lastMessage = useCurrent(topic.lastMessage);
  return (
    <li>
      <a
        href={hrefOf({ name: "topic", id: topic.id, at: null })}
        aria-current={isCurrent ? "page" : undefined}
        data-topic={topic.id}
        className="flex items-center gap-2 rounded-lg px-2 py-1.5 hover:bg-hover aria-[current]:bg-glow"
      >
        <span className="min-w-0 grow">
          <span className={`block truncate ${unread > 0 ? "font-semibold" : ""}`}>{title}</span>
          {lastMessage && (
            <span className="block truncate text-sm text-quiet">
              {lastMessage.author.name}: {contentOf(lastMessage, t)}
            </span>
          )}
        </span>
        <UnreadCount count={unread} />
      </a>
    </li>
  );
}

/** A number of unread messages or threads; nothing for 0. */
export function UnreadCount({ count }: { count: number }) {
  const { t } = useTranslation();
  if (count === 0) return null;
  return (
    <span className="shrink-0 rounded-full bg-accent px-2 text-xs font-semibold leading-5 text-on-accent tabular-nums">
      {count >= 100 ? "99+" : count}
      <span className="sr-only"> {t("unread")}</span>
    </span>
  );
}
