/** Decorative beacon fires on three hills. */

function Beacon({ transform }: { transform: string }) {
  return (
    <g transform={transform}>
      <path className="smoke" d="M0-42c-14-16 13-28 0-46s10-28 2-44" />
      <path
        className="fire"
        d="M0-34c5 9 16 14 16 24a16 15 0 0 1-32 0c0-7 4-10 6-13 1 3 2 4 4 5 3-6 2-10 6-16z"
      />
      <path className="heart" d="M1-16c2 4 6 6 6 10a6 6 0 0 1-12 0c0-4 4-6 6-10z" />
    </g>
  );
}

export function Hills() {
  return (
    <svg
      viewBox="0 0 1200 300"
      preserveAspectRatio="xMidYMax slice"
      aria-hidden="true"
      focusable="false"
      className="block h-[clamp(9rem,25vw,22rem)] w-full overflow-visible"
    >
      <path
        className="fill-hill-far"
        d="M0 240C140 214 250 232 380 206S540 150 606 150 690 192 750 192 830 118 890 118 1010 190 1200 200V300H0z"
      />
      <Beacon transform="translate(890 120) scale(0.6)" />
      <Beacon transform="translate(606 152) scale(0.7)" />
      <path
        className="fill-hill-near"
        d="M0 270C150 258 240 186 330 186S480 252 640 262 940 250 1200 272V300H0z"
      />
      <Beacon transform="translate(330 188)" />
    </svg>
  );
}
