/** The screens that one can go to from anywhere. */
import type { Word } from "../i18n/words";
import { mayOperate, mayReadMail } from "../session/rights";
import type { IconName } from "../ui/icons";
import type { Place } from "./router";

export interface ScreenLink {
  place: Place;
  word: Word;
  icon: IconName;
  /** The places that belong to it. */
  names: Place["name"][];
  /** Who sees it; everyone when left out. */
  for?: (roles: readonly string[]) => boolean;
}

export const SCREENS: readonly ScreenLink[] = [
  { place: { name: "home" }, word: "home", icon: "home", names: ["home", "everyone", "tag", "person"] },
  { place: { name: "chat" }, word: "chat", icon: "chat", names: ["chat", "topic", "browse"] },
  {
    place: { name: "notifications" },
    word: "notifications",
    icon: "bell",
    names: ["notifications", "reactions"],
  },
  {
    place: { name: "publishing", view: null, day: null, post: null },
    word: "publishing",
    icon: "calendar",
    names: ["publishing"],
  },
];

/** What operators work with: on a small telephone the account has them, as the bar has no room. */
export const WORK_SCREENS: readonly ScreenLink[] = [
  {
    place: { name: "calls" },
    word: "calls",
    icon: "phone",
    names: ["calls", "newCallJob", "callJob", "callRules"],
    for: mayOperate,
  },
  {
    place: { name: "mail" },
    word: "mail",
    icon: "mail",
    names: ["mail", "mailDomains", "bounceRates"],
    for: mayReadMail,
  },
];

export function screensFor(screens: readonly ScreenLink[], roles: readonly string[]): ScreenLink[] {
  return screens.filter((screen) => screen.for?.(roles) ?? true);
}
