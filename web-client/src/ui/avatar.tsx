/** The picture of a user or a community, or the initial on a colour derived from the id. */
import { usePicture } from "../files/pictures";
import { useIsOnline } from "../presence/presence";
import { useTranslation } from "./preferences";

const SIZES = { small: "size-6 text-xs", middle: "size-9 text-base", large: "size-20 text-2xl" } as const;

/** Place and size of the dot on the edge of the round picture. */
const DOTS = {
  small: "-bottom-0.5 -right-0.5 size-3",
  middle: "-bottom-0.5 -right-0.5 size-3",
  large: "bottom-1 right-1 size-4",
} as const;

/** The golden angle. Multiples of it are spread evenly over the colour circle. */
const GOLDEN_ANGLE_DEGREES = 137.508;

/** Returns the hue of a text, from 0 to 359 degrees. Similar ids get different hues. */
export function hueOf(text: string): number {
  let hash = 0;
  for (const character of text) hash = (hash * 31 + (character.codePointAt(0) ?? 0)) >>> 0;
  return Math.floor((hash * GOLDEN_ANGLE_DEGREES) % 360);
}

interface Props {
  user: { id: string; name: string; handle: string; avatarUrl?: string | null };
  size?: keyof typeof SIZES;
}

interface CommunityProps {
  community: { id: string; name: string; pictureUrl: string | null };
  size: keyof typeof SIZES;
}

/** The avatar, with a dot for a person who is online. */
export function Avatar(props: Props) {
  const { t } = useTranslation();
  if (!useIsOnline(props.user.id)) return <AvatarPicture {...props} />;
  return (
    <span className="relative inline-flex shrink-0" data-online={props.user.id}>
      <AvatarPicture {...props} />
      <span
        role="img"
        aria-label={t("presence.online")}
        className={`absolute rounded-full border-2 border-paper bg-good ${DOTS[props.size ?? "middle"]}`}
      />
    </span>
  );
}

/** The picture of a community. */
export function CommunityAvatar({ community: { id, name, pictureUrl }, size }: CommunityProps) {
  return <AvatarPicture user={{ id, name, handle: name, avatarUrl: pictureUrl }} size={size} />;
}

function AvatarPicture({ user, size = "middle" }: Props) {
  const picture = usePicture(user.avatarUrl);
  const [initial = "?"] = user.name || user.handle;
  if (picture)
    return (
      <img
        src={picture}
        alt=""
        draggable={false}
        data-avatar={user.id}
        className={`inline-block shrink-0 select-none rounded-full object-cover ${SIZES[size]}`}
      />
    );
  return (
    <span
      aria-hidden="true"
      className={`inline-flex shrink-0 select-none items-center justify-center rounded-full font-semibold ${SIZES[size]}`}
      style={{ background: `oklch(0.46 0.09 ${hueOf(user.id)})`, color: "#fff" }}
    >
      {initial.toUpperCase()}
    </span>
  );
}
