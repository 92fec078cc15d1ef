/** Icons, drawn as lines on a grid of 24 by 24 units in the colour of the text. */

const PATHS = {
  home: "M4 11 12 4l8 7v8a1 1 0 0 1-1 1h-4v-6H9v6H5a1 1 0 0 1-1-1z",
  chat: "M4 6a2 2 0 0 1 2-2h12a2 2 0 0 1 2 2v8a2 2 0 0 1-2 2h-7l-5 4v-4a2 2 0 0 1-2-2z",
  bell: "M6 16V11a6 6 0 1 1 12 0v5l2 2H4zM10 21h4",
  bellOff: "M6 16V11a6 6 0 0 1 .6-2.6M9 5.8A6 6 0 0 1 18 11v4M18 18H4l2-2M10 21h4M4 4l16 16",
  search: "M11 4a7 7 0 1 0 0 14 7 7 0 0 0 0-14zM16 16l5 5",
  send: "M4 12 20 4l-4 16-4-7zM12 13l8-9",
  smile: "M12 3a9 9 0 1 0 0 18 9 9 0 0 0 0-18zM8.5 14.5a4.5 4.5 0 0 0 7 0M9 9.5v.5M15 9.5v.5",
  stamp: "M9 11c0-2-2-3-2-5a5 5 0 0 1 10 0c0 2-2 3-2 5v2h3a2 2 0 0 1 2 2v2H4v-2a2 2 0 0 1 2-2h3zM5 21h14",
  edit: "M4 20l1-5L16 4l4 4L9 19zM14 6l4 4",
  trash: "M4 7h16M9 7V4h6v3M6 7l1 13h10l1-13M10 11v5M14 11v5",
  link: "M10 14a4 4 0 0 0 6 0l3-3a4 4 0 0 0-6-6l-1 1M14 10a4 4 0 0 0-6 0l-3 3a4 4 0 0 0 6 6l1-1",
  people:
    "M9 11a3.5 3.5 0 1 0 0-7 3.5 3.5 0 0 0 0 7zM3 20a6 6 0 0 1 12 0M16 4.5a3.5 3.5 0 0 1 0 6M17 14a6 6 0 0 1 4 6",
  plus: "M12 5v14M5 12h14",
  down: "M12 5v14M6 13l6 6 6-6",
  up: "M12 19V5M6 11l6-6 6 6",
  back: "M15 5l-7 7 7 7",
  close: "M6 6l12 12M18 6 6 18",
  check: "M5 13l4 4L19 7",
  flame: "M12 3c1 4 6 6 6 11a6 6 0 0 1-12 0c0-3 2-4 3-6 0 2 1 3 2 3 1-2 0-5 1-8z",
  more: "M5 12h.01M12 12h.01M19 12h.01",
  image: "M4 5h16v14H4zM4 16l5-5 4 4 3-3 4 4M15 9h.01",
  camera: "M4 8h4l2-3h4l2 3h4v11H4zM12 10a3.5 3.5 0 1 0 0 7 3.5 3.5 0 0 0 0-7z",
  format: "M3 18 8 5l5 13M4.8 13.5h6.4M16 9h5M16 13.5h5M16 18h5",
  quote: "M4 5h16v12H9l-5 4zM9 9h6M9 13h3",
  repost: "M5 15V9a2 2 0 0 1 2-2h10M14 4l3 3-3 3M19 9v6a2 2 0 0 1-2 2H7M10 20l-3-3 3-3",
  door: "M14 4H6v16h8M10 12h11M18 9l3 3-3 3",
  phone: "M7 3h3l1.5 5-2 1.5a12 12 0 0 0 5 5l1.5-2 5 1.5v3a2 2 0 0 1-2 2A16 16 0 0 1 5 5a2 2 0 0 1 2-2z",
  mail: "M4 6h16a1 1 0 0 1 1 1v10a1 1 0 0 1-1 1H4a1 1 0 0 1-1-1V7a1 1 0 0 1 1-1zM3.5 7l8.5 6 8.5-6",
  sliders: "M4 7h9M17 7h3M4 17h3M11 17h9M15 5v4M9 15v4",
  list: "M8 6h12M8 12h12M8 18h12M4 6h.01M4 12h.01M4 18h.01",
  file: "M6 3h8l5 5v12a1 1 0 0 1-1 1H6a1 1 0 0 1-1-1V4a1 1 0 0 1 1-1zM14 3v5h5M9 13h6M9 17h4",
  play: "M7 5l12 7-12 7z",
  pause: "M8 5v14M16 5v14",
  stop: "M6 6h12v12H6z",
  copy: "M9 9h11v11H9zM5 15H4V4h11v1",
  lock: "M7 11V8a5 5 0 0 1 10 0v3M5 11h14v9H5z",
  clock: "M12 3a9 9 0 1 0 0 18 9 9 0 0 0 0-18zM12 7v5l3 2",
  calendar: "M4 6h16v14H4zM4 10.5h16M8 3v5M16 3v5",
  alert: "M12 4 2.5 20h19zM12 10v4.5M12 17.2v.1",
  unknown: "M12 3a9 9 0 1 0 0 18 9 9 0 0 0 0-18zM9.5 9.5a2.5 2.5 0 1 1 3.5 2.3c-.7.3-1 .8-1 1.7M12 16.7v.1",
  ban: "M12 3a9 9 0 1 0 0 18 9 9 0 0 0 0-18zM5.7 5.7l12.6 12.6",
  key: "M14 10a4 4 0 1 0-3.5 4L12 15.5h2V18h2.5v2.5H21V17l-6.5-6.5zM9 9h.01",
  pin: "M9 3h6l-1 6 4 4v2H6v-2l4-4zM12 15v6",
  box: "M3 5h18v4H3zM5 9v10h14V9M10 13h4",
  flag: "M6 21V4h11l-2 4 2 4H6",
  shield: "M12 3l8 3v5c0 5-3.5 8.5-8 10-4.5-1.5-8-5-8-10V6zM8.5 12l2.5 2.5 4.5-5",
  half: "M12 3a9 9 0 1 0 0 18 9 9 0 0 0 0-18zM12 3v18M12 7l5 3M12 12h8",
} as const;

export type IconName = keyof typeof PATHS;

export function Icon({ name, className = "size-5" }: { name: IconName; className?: string }) {
  return (
    <svg viewBox="0 0 24 24" className={`${className} shrink-0`} aria-hidden="true" focusable="false">
      <path
        d={PATHS[name]}
        fill="none"
        stroke="currentColor"
        strokeWidth={name === "more" ? 3 : 1.75}
        strokeLinecap="round"
        strokeLinejoin="round"
      />
    </svg>
  );
}
