/** Goes from the address of a thread to the topic of its parent message, with the thread open. */
import { useEffect } from "react";
import { useQuery } from "urql";
import { hrefOf } from "../../app/router";
import { ErrorState, LoadingState } from "../../ui/states";
import { ParentMessage } from "./operations";

export function ThreadRedirect({ parentId, reply }: { parentId: string; reply: string | null }) {
  const [{ data, error }] = useQuery({ query: ParentMessage, variables: { id: parentId } });
  const parent = data?.message;
  useEffect(() => {
    if (!parent) return;
    const { topicId, timestamp } = parent;
    location.replace(hrefOf({ name: "topic", id: topicId, at: timestamp, thread: parentId, reply }));
  }, [parent, parentId, reply]);
  return error ? <ErrorState error={error} /> : <LoadingState rows={8} />;
}
