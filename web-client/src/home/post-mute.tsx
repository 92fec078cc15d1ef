/** The button that mutes the conversation of a post, or ends the mute. */
import { useMutation } from "urql";
import { MUTE, UNMUTE } from "../mutes/operations";
import { IconButton } from "../ui/button";
import { useTranslation } from "../ui/preferences";
import { notify, notifyFailure } from "../ui/toasts";
import type { PostBody } from "./operations";
import type { PostChange } from "./post-changes";

interface Props {
  post: PostBody;
  className: string;
  onChanged: (change: PostChange) => void;
}

export function PostMuteButton({ post: { id, muted }, className, onChanged }: Props) {
  const { t } = useTranslation();
  const [, mute] = useMutation(MUTE.POST);
  const [, unmute] = useMutation(UNMUTE.POST);

  async function toggle() {
    const { error } = muted ? await unmute({ id }) : await mute({ id, until: null });
    if (error) return notifyFailure(error);
    onChanged((post) => ({ ...post, muted: !muted }));
    notify(t(muted ? "post.unmuted" : "mutes.muted.POST"));
  }

  return (
    <IconButton
      icon={muted ? "bellOff" : "bell"}
      label={t(muted ? "post.unmute" : "post.mute")}
      size="size-8"
      className={className}
      onClick={toggle}
    />
  );
}
