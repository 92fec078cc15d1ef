/** Decides whether the viewer wants an alert now: by category, level of the place, and quiet hours. As the server does. */
import type { LoadedNotificationSettings, QuietHours } from "../operations";
import type { Alert } from "./alerts";

export interface AlertSettings {
  ways: readonly Pick<LoadedNotificationSettings["ways"][number], "category" | "push">[];
  levels: readonly Pick<LoadedNotificationSettings["levels"][number], "kind" | "placeId" | "level">[];
  quietHours: QuietHours | null;
}

/** The topic and the community of an alert's message. A thread counts as the topic of its parent message. */
export interface AlertPlace {
  topicId: string;
  communityId: string;
}

/** Returns whether the viewer wants the alert at this time. `place` is null for an alert about no message. */
export function isWanted(
  { category }: Pick<Alert, "category">,
  place: AlertPlace | null,
  { ways, levels, quietHours }: AlertSettings,
  now: Date,
): boolean {
  if (!ways.some((each) => each.category === category && each.push)) return false;
  if (quietHours && isQuiet(quietHours, now)) return false;
  const level = place ? levelOf(place, levels) : "ALL";
  return level === "ALL" || (level === "MENTIONS" && category === "MENTION");
}

function levelOf({ topicId, communityId }: AlertPlace, levels: AlertSettings["levels"]) {
  const find = (kind: string, id: string) =>
    levels.find((each) => each.kind === kind && each.placeId === id)?.level;
  return find("TOPIC", topicId) ?? find("COMMUNITY", communityId) ?? "ALL";
}

function isQuiet({ start, end, timeZone }: QuietHours, now: Date): boolean {
  const format = new Intl.DateTimeFormat("en-GB", { timeZone, timeStyle: "short", hourCycle: "h23" });
  const time = format.format(now);
  return start < end ? start <= time && time < end : start <= time || time < end;
}
