/** The screens in the navigation bar. */
import type { TextKey } from "../i18n/texts";
import { mayAdminister, mayOperate, mayReadMail } from "../session/permissions";
import type { IconName } from "../ui/icons";
import type { Place } from "./router";

export interface ScreenLink {
  place: Place;
  textKey: TextKey;
  icon: IconName;
  /** The names of all places that belong to the screen. */
  placeNames: Place["name"][];
  /** Returns whether a user with these roles sees the link; by default every user does. */
  isVisibleFor?: (roles: readonly string[]) => boolean;
}

export const SCREENS: readonly ScreenLink[] = [
  {
    place: { name: "home" },
    textKey: "home",
    icon: "home",
    placeNames: ["home", "everyone", "tag", "person"],
  },
  {
    place: { name: "chat" },
    textKey: "chat",
    icon: "chat",
    placeNames: ["chat", "topic", "browse", "community"],
  },
  {
    place: { name: "notifications" },
    textKey: "notifications",
    icon: "bell",
    placeNames: ["notifications", "reactions"],
  },
  {
    place: { name: "publishing", view: null, day: null, post: null },
    textKey: "publishing",
    icon: "calendar",
    placeNames: ["publishing"],
  },
];

/** Screens for operators and administrators. On a narrow screen they are in the account menu, because the bar has no room. */
export const OPERATOR_SCREENS: readonly ScreenLink[] = [
  {
    place: { name: "calls" },
    textKey: "calls",
    icon: "phone",
    placeNames: ["calls", "newCallJob", "callJob", "callRules"],
    isVisibleFor: mayOperate,
  },
  {
    place: { name: "mail" },
    textKey: "mail",
    icon: "mail",
    placeNames: ["mail", "mailDomains", "bounceRates"],
    isVisibleFor: mayReadMail,
  },
  {
    place: { name: "admin" },
    textKey: "admin",
    icon: "shield",
    placeNames: ["admin", "adminAudit", "adminInvitations", "adminKeys"],
    isVisibleFor: mayAdminister,
  },
];

export function visibleScreens(screens: readonly ScreenLink[], roles: readonly string[]): ScreenLink[] {
  return screens.filter((screen) => screen.isVisibleFor?.(roles) ?? true);
}
