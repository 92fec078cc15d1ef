/** The link to the followed threads in the sidebar, with the number of unread ones. */
import { hrefOf, useRoute } from "../../app/router";
import { Icon } from "../../ui/icons";
import { useTranslation } from "../../ui/preferences";
import { UnreadCount } from "../topics/topic-link";
import { FOLLOWED_PAGE_SIZE, useFollowedThreads } from "./followed-threads";

export function ThreadsLink() {
  const { t } = useTranslation();
  const route = useRoute();
  const { threads = [] } = useFollowedThreads(FOLLOWED_PAGE_SIZE);
  const openParentId = route.name === "topic" ? route.thread : undefined;
  const unread = threads.filter(
    ({ thread }) => thread.unreadCount > 0 && thread.parentMessageId !== openParentId,
  ).length;
  return (
    <a
      href={hrefOf({ name: "threads" })}
      aria-current={route.name === "threads" ? "page" : undefined}
      className="mb-3 flex items-center gap-2 rounded-lg px-2 py-1.5 hover:bg-hover aria-[current]:bg-glow"
    >
      <Icon name="chat" className="size-4 text-quiet" />
      <span className={`grow truncate ${unread > 0 ? "font-semibold" : ""}`}>{t("threads")}</span>
      <UnreadCount count={unread} />
    </a>
  );
}
