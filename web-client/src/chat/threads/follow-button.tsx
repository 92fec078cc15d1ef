/** The button with which the viewer follows a thread, or ends that. */
import { useEffect } from "react";
import { useMutation, useQuery } from "urql";
import { IconButton } from "../../ui/button";
import { useTranslation } from "../../ui/preferences";
import { notifyFailure } from "../../ui/toasts";
import { FollowThread, IsThreadFollowed, UnfollowThread } from "./follow-operations";

interface Props {
  parentId: string;
  /** The number of replies. A reply by the viewer may have made the viewer follow the thread. */
  replyCount: number;
}

export function FollowButton({ parentId, replyCount }: Props) {
  const { t } = useTranslation();
  const [{ data }, load] = useQuery({ query: IsThreadFollowed, variables: { id: parentId } });
  const [{ fetching: isFollowing }, follow] = useMutation(FollowThread);
  const [{ fetching: isUnfollowing }, unfollow] = useMutation(UnfollowThread);
  // biome-ignore lint/correctness/useExhaustiveDependencies: loads again after each reply.
  useEffect(() => load({ requestPolicy: "network-only" }), [load, replyCount]);
  const isFollowed = data?.message?.thread?.followed;
  if (isFollowed === undefined) return null;

  async function toggle() {
    const { error } = await (isFollowed ? unfollow : follow)({ id: parentId });
    if (error) notifyFailure(error);
  }

  return (
    <IconButton
      icon={isFollowed ? "check" : "plus"}
      label={t(isFollowed ? "thread.unfollow" : "thread.follow")}
      disabled={isFollowing || isUnfollowing}
      onClick={toggle}
    />
  );
}
