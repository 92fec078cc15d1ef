/** A user's initial on a colour derived from their id. */

const SIZES = { small: "size-6 text-xs", middle: "size-9 text-base", large: "size-20 text-2xl" } as const;

/** The golden angle. Multiples of it are spread evenly over the colour circle. */
const GOLDEN_ANGLE_DEGREES = 137.508;

/** Returns the hue of a text, from 0 to 359 degrees. Similar ids get different hues. */
export function hueOf(text: string): number {
  let hash = 0;
  for (const character of text) hash = (hash * 31 + (character.codePointAt(0) ?? 0)) >>> 0;
  return Math.floor((hash * GOLDEN_ANGLE_DEGREES) % 360);
}

export function Avatar({
  user,
  size = "middle",
}: {
  user: { id: string; name: string; handle: string };
  size?: keyof typeof SIZES;
}) {
  const [initial = "?"] = user.name || user.handle;
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
