/** The replies to a message, in short: who replied last, how many replies there are, and when the last one came. */
import { dateOf, timeOrDate } from "../../i18n/times";
import { Avatar } from "../../ui/avatar";
import { useTranslation } from "../../ui/preferences";
import type { Message } from "../operations";
import { useThreadOpener } from "./opener";

export function ThreadLink({ message }: { message: Message }) {
  const { t, language } = useTranslation();
  const open = useThreadOpener();
  const { thread } = message;
  if (!thread || thread.replyCount === 0 || !open) return null;
  const { replyCount, lastReplyAt, lastRepliers } = thread;
  return (
    <button
      type="button"
      data-thread={message.id}
      onClick={() => open(message)}
      className="mt-1 inline-flex min-h-8 max-w-full items-center gap-2 rounded-full border border-line bg-raised px-2 text-sm hover:bg-hover"
    >
      <span aria-hidden="true" className="flex -space-x-1.5">
        {lastRepliers.slice(0, 3).map((user) => (
          <Avatar key={user.id} user={user} size="small" />
        ))}
      </span>
      <span className="font-medium text-accent">{t("thread.replies", { count: replyCount })}</span>
      {lastReplyAt && (
        <span className="truncate text-xs text-quiet">
          {timeOrDate(language, dateOf(lastReplyAt), new Date())}
        </span>
      )}
    </button>
  );
}
