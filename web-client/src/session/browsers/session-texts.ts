/** Describes a session to people: its browser, and when and how the person signed in. */
import { relativeTime, timeOrDate } from "../../i18n/times";
import type { useTranslation } from "../../ui/preferences";
import { browserName } from "./browser-name";
import type { Session } from "./session-parts";

type Translation = ReturnType<typeof useTranslation>;

/** Returns the browser's name, when it was last used, and a line with the sign-in. */
export function sessionTexts({ t, language }: Translation, session: Session) {
  const { method, startedAt, lastUsedAt, address, userAgent } = session;
  const signIn = [
    t(`sessions.method.${method}`),
    t("sessions.started", { time: timeOrDate(language, new Date(startedAt), new Date()) }),
    address,
  ];
  return {
    name: browserName(userAgent) ?? t("sessions.unknownBrowser"),
    lastUse: t("sessions.used", { time: relativeTime(language, new Date(lastUsedAt), new Date()) }),
    signIn: signIn.filter(Boolean).join(" · "),
  };
}
