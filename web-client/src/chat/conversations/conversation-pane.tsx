/** One conversation: its heading, its messages, and the answer to a request. */
import { type ReactNode, useState } from "react";
import { useQuery } from "urql";
import { request, useApi } from "../../api/api";
import { navigate } from "../../app/router";
import { useViewer } from "../../session/viewer";
import { Button } from "../../ui/button";
import { useTranslation } from "../../ui/preferences";
import { ErrorState, LoadingState } from "../../ui/states";
import { notify, notifyFailure } from "../../ui/toasts";
import type { TopicSummary } from "../topics/topic-heading";
import { ConversationHeading } from "./conversation-heading";
import { AcceptConversation, type Conversation, DeclineConversation, OneConversation } from "./operations";
import { absentPerson, otherPeople, titleOf } from "./people";

interface Props {
  topic: TopicSummary;
  /** Whether an open thread covers the conversation. */
  isCovered: boolean;
  /** Renders the messages under a title, and what stands above or in place of the message field. */
  children: (title: string, note: ReactNode, replacement: ReactNode) => ReactNode;
}

export function ConversationPane({ topic, isCovered, children }: Props) {
  const { t } = useTranslation();
  const viewer = useViewer();
  const [{ data, error }, load] = useQuery({
    query: OneConversation,
    variables: { id: topic.id },
    requestPolicy: "cache-and-network",
  });
  const conversation = data?.conversation;
  if (error && !conversation)
    return <ErrorState error={error} retry={() => load({ requestPolicy: "network-only" })} />;
  if (!conversation) return <LoadingState rows={8} />;
  const absent = absentPerson(conversation, viewer.id);
  const note = absent && (
    <p role="status" className="px-2 pb-1 text-sm text-quiet" data-testid="not-accepted">
      {t("conversation.absent", { name: absent.name })}
    </p>
  );
  const isRequest = conversation.state === "REQUESTED";
  return (
    <section aria-labelledby="topic-title" className="relative flex h-full min-h-0 flex-col">
      <ConversationHeading conversation={conversation} isMuted={topic.muted} isCovered={isCovered} />
      {children(
        titleOf(conversation, viewer.id, t),
        note,
        isRequest && <RequestBar conversation={conversation} />,
      )}
    </section>
  );
}

/** Asks the viewer to accept or decline a request. */
function RequestBar({ conversation }: { conversation: Conversation }) {
  const { t } = useTranslation();
  const { cached } = useApi();
  const viewer = useViewer();
  const [isSending, setIsSending] = useState(false);
  const { id } = conversation;
  const [asking] = otherPeople(conversation, viewer.id);

  async function answer(send: () => Promise<unknown>) {
    setIsSending(true);
    await send().catch(notifyFailure);
    setIsSending(false);
  }
  async function decline() {
    await request(cached, DeclineConversation, { id });
    notify(t("conversation.declined"));
    navigate({ name: "chat" });
  }
  return (
    <div
      className="mx-auto mb-3 w-[min(100%-1.5rem,62rem)] rounded-card bg-well px-4 py-3"
      data-testid="request"
    >
      <p className="font-semibold">{t("conversation.requestTitle", { name: asking?.name ?? "" })}</p>
      <p className="text-sm text-quiet">{t("conversation.requestHint")}</p>
      <div className="mt-3 flex gap-2">
        <Button
          kind="main"
          disabled={isSending}
          onClick={() => answer(() => request(cached, AcceptConversation, { id }))}
        >
          {t("conversation.accept")}
        </Button>
        <Button disabled={isSending} onClick={() => answer(decline)}>
          {t("conversation.decline")}
        </Button>
      </div>
    </div>
  );
}
