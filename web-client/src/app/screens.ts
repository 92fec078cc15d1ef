/** The screens in the navigation bar. */
import type { TextKey } from "../i18n/texts";
import { mayAdminister, mayOperate, mayReadMail } from "../session/permissions";
import type { IconName } from "../ui/icons";
import type { Route } from "./router";

export interface ScreenLink {
  route: Route;
  textKey: TextKey;
  icon: IconName;
  /** The names of all routes that belong to the screen. */
  routeNames: Route["name"][];
  /** Returns whether a user with these roles sees the link; by default every user does. */
  isVisibleFor?: (roles: readonly string[]) => boolean;
}

export const SCREENS: readonly ScreenLink[] = [
  {
    route: { name: "home" },
    textKey: "home",
    icon: "home",
    routeNames: ["home", "everyone", "tag", "person", "post"],
  },
  {
    route: { name: "chat" },
    textKey: "chat",
    icon: "chat",
    routeNames: ["chat", "topic", "browse", "threads", "community"],
  },
  {
    route: { name: "notifications" },
    textKey: "notifications",
    icon: "bell",
    routeNames: ["notifications", "reactions", "notificationSettings"],
  },
  {
    route: { name: "publishing", view: null, day: null, post: null },
    textKey: "publishing",
    icon: "calendar",
    routeNames: ["publishing"],
  },
];

/**
 * Screens for operators and administrators. On a narrow screen, the account menu links to them, because the navigation
 * bar has no room.
 */
export const OPERATOR_SCREENS: readonly ScreenLink[] = [
  {
    route: { name: "calls" },
    textKey: "calls",
    icon: "phone",
    routeNames: ["calls", "newCallJob", "callJob", "callRules"],
    isVisibleFor: mayOperate,
  },
  {
    route: { name: "mail" },
    textKey: "mail",
    icon: "mail",
    routeNames: ["mail", "mailDomains", "mailPolicy", "bounceRates"],
    isVisibleFor: mayReadMail,
  },
  {
    route: { name: "admin" },
    textKey: "admin",
    icon: "shield",
    routeNames: [
      "admin",
      "adminAudit",
      "adminErasures",
      "adminHeld",
      "adminInvitations",
      "adminKeys",
      "adminReports",
      "adminSettings",
      "adminStamps",
      "adminWebhooks",
    ],
    isVisibleFor: mayAdminister,
  },
];

export function visibleScreens(screens: readonly ScreenLink[], roles: readonly string[]): ScreenLink[] {
  return screens.filter((screen) => screen.isVisibleFor?.(roles) ?? true);
}
