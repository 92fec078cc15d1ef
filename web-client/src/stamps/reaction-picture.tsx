/** What a reaction looks like: an emoji of Unicode, the picture of a stamp, or the name of a removed stamp. */
import { usePicture } from "../files/pictures";
import { useStampOf } from "./own-stamps";

export function ReactionPicture({ emoji }: { emoji: string }) {
  return emoji.startsWith(":") ? <StampPicture emoji={emoji} /> : emoji;
}

function StampPicture({ emoji }: { emoji: string }) {
  const picture = usePicture(useStampOf(emoji)?.thumbnailUrl);
  if (picture === null) return emoji;
  return <img src={picture} alt={emoji} className="inline-block size-5 object-contain" />;
}
