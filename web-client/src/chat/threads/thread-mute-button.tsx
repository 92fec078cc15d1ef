/** The button that mutes a thread, or ends that. */
import { useQuery } from "urql";
import { MuteButton } from "../../mutes/mute-button";
import { useTranslation } from "../../ui/preferences";
import { type Message, TopicHeader } from "../operations";
import { threadName } from "./thread-names";

export function ThreadMuteButton({ threadId, parent }: { threadId: string; parent: Message }) {
  const { t } = useTranslation();
  const [{ data }] = useQuery({ query: TopicHeader, variables: { id: threadId } });
  if (!data?.topic) return null;
  return <MuteButton subject="TOPIC" id={threadId} name={threadName(parent, t)} isMuted={data.topic.muted} />;
}
