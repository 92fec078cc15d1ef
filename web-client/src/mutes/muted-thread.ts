/** The name and the place of a muted thread. */
import { useQuery } from "urql";
import { hrefOf } from "../app/router";
import { parentText, placeText } from "../chat/threads/thread-names";
import { useTranslation } from "../ui/preferences";
import { ParentOfThread, PlaceOfThread } from "./operations";

interface MutedThread {
  /** The parent message, or a note until it is loaded and if the viewer may not see it. */
  name: string;
  /** The topic of the parent message; null until it is loaded. */
  place: string | null;
  href: string | null;
}

/** Returns the thread of a message; null without a message. */
export function useMutedThread(parentId: string | null): MutedThread | null {
  const { t } = useTranslation();
  const [{ data, fetching }] = useQuery({
    query: ParentOfThread,
    variables: { id: parentId ?? "" },
    pause: parentId === null,
  });
  const parent = data?.message;
  const [{ data: topicData }] = useQuery({
    query: PlaceOfThread,
    variables: { id: parent?.topicId ?? "" },
    pause: !parent,
  });
  if (parentId === null) return null;
  if (!parent) return { name: t(fetching ? "thread.title" : "mutes.hiddenParent"), place: null, href: null };
  const topic = topicData?.topic;
  return {
    name: parentText(parent, t),
    place: topic ? placeText(topic, t) : null,
    href: hrefOf({ name: "topic", id: parent.topicId, at: null, thread: parent.id }),
  };
}
