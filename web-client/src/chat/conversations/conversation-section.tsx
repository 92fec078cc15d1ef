/** The viewer's conversations and requests in the sidebar. */
import { useState } from "react";
import { useViewer } from "../../session/viewer";
import { Button, IconButton } from "../../ui/button";
import { useTranslation } from "../../ui/preferences";
import { ErrorState } from "../../ui/states";
import { TopicLink } from "../topics/topic-link";
import { titleOf } from "./people";
import { StartConversationDialog } from "./start-dialog";
import { type ConversationList, useConversations } from "./use-conversations";

export function ConversationSection() {
  const { t } = useTranslation();
  const [isStarting, setIsStarting] = useState(false);
  const joined = useConversations("JOINED");
  const requested = useConversations("REQUESTED");
  const requestCount = requested.conversations?.length ?? 0;
  return (
    <section aria-labelledby="conversations" className="mb-4">
      <div className="flex items-center justify-between pl-2">
        <h3 id="conversations" className="truncate text-sm font-semibold text-quiet">
          {t("conversations")}
        </h3>
        <IconButton
          icon="plus"
          size="size-8"
          label={t("conversation.new")}
          onClick={() => setIsStarting(true)}
        />
      </div>
      {requestCount > 0 && (
        <details className="px-2 pb-1">
          <summary className="cursor-pointer py-1 text-sm font-semibold text-accent">
            {t("conversation.requests", { count: requestCount })}
          </summary>
          <ConversationLinks list={requested} />
        </details>
      )}
      <ConversationLinks list={joined} />
      {joined.conversations?.length === 0 && (
        <p className="px-2 py-1 text-sm text-quiet">{t("conversation.none")}</p>
      )}
      {joined.error && !joined.conversations && <ErrorState error={joined.error} retry={joined.reload} />}
      {isStarting && <StartConversationDialog onClose={() => setIsStarting(false)} />}
    </section>
  );
}

function ConversationLinks({ list: { conversations = [], hasMore, loadMore } }: { list: ConversationList }) {
  const { t } = useTranslation();
  const viewer = useViewer();
  return (
    <>
      <ul aria-labelledby="conversations">
        {conversations.map((each) => (
          <TopicLink key={each.id} topic={each.topic} title={titleOf(each, viewer.id, t)} />
        ))}
      </ul>
      {hasMore && (
        <Button kind="quiet" className="w-full" onClick={loadMore}>
          {t("conversation.more")}
        </Button>
      )}
    </>
  );
}
