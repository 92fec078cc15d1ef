/** The screens in the navigation bar. */
import type { Word } from "../i18n/words";
import { mayOperate, mayReadMail } from "../session/permissions";
import type { IconName } from "../ui/icons";
import type { Place } from "./router";

export interface ScreenLink {
  place: Place;
  word: Word;
  icon: IconName;
  /** The places that belong to the screen. */
  names: Place["name"][];
  /** Returns whether a user with these roles sees the link; by default every user does. */
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

/** Screens for operators. On a narrow screen they are in the account menu, because the bar has no room. */
export const OPERATOR_SCREENS: readonly ScreenLink[] = [
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
