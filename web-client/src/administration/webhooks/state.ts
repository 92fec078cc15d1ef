/** The state of a webhook, and what an administrator must know about it. */
import type { Language } from "../../i18n/texts";
import { relativeTime, timeOrDate } from "../../i18n/times";
import type { BadgeTone } from "../../ui/badge";
import type { Translate } from "../../ui/preferences";
import type { Webhook } from "./operations";

export type WebhookState = "enabled" | "failing" | "disabled";

export function stateOf({
  disabledAt,
  failingSince,
}: Pick<Webhook, "disabledAt" | "failingSince">): WebhookState {
  if (disabledAt) return "disabled";
  return failingSince ? "failing" : "enabled";
}

const STATE_TONES = { enabled: "good", failing: "wait", disabled: "bad" } as const;

/** Returns the tone of a webhook's state. A webhook that somebody disabled is no trouble. */
export function toneOf(webhook: Webhook): Exclude<BadgeTone, "live"> {
  return webhook.disabledReason === "REQUESTED" ? "quiet" : STATE_TONES[stateOf(webhook)];
}

export const STATE_TEXTS = {
  enabled: "webhooks.badgeEnabled",
  failing: "webhooks.badgeFailing",
  disabled: "webhooks.badgeDisabled",
} as const;

/** Returns the webhooks with those first that nobody disabled, and that are disabled or failing anyway. */
export function troubledFirst(webhooks: readonly Webhook[]): Webhook[] {
  const isTroubled = (each: Webhook) => stateOf(each) !== "enabled" && each.disabledReason !== "REQUESTED";
  return webhooks.toSorted((a, b) => Number(isTroubled(b)) - Number(isTroubled(a)));
}

/** Returns whether a webhook can't be enabled, because its service key has ended. */
export function isOver({ disabledReason }: Pick<Webhook, "disabledReason">): boolean {
  return disabledReason === "KEY_ENDED";
}

/** Returns the sentences of the notice about a webhook that is disabled or failing; none for any other. */
export function noticeOf(webhook: Webhook, t: Translate, language: Language, now: Date): string[] {
  const { disabledAt, disabledReason, failingSince, nextTryAt, lastError } = webhook;
  const time = (instant: string) => timeOrDate(language, new Date(instant), now);
  const sentences: string[] = [];
  if (disabledAt) {
    sentences.push(t(`webhooks.disabled.${disabledReason ?? "REQUESTED"}`, { time: time(disabledAt) }));
    sentences.push(t(isOver(webhook) ? "webhooks.keyEndedHint" : "webhooks.disabledHint"));
  } else if (failingSince) {
    sentences.push(t("webhooks.failing", { time: time(failingSince) }));
    if (nextTryAt) sentences.push(t("webhooks.nextTry", { time: time(nextTryAt) }));
  }
  return sentences.length > 0 && lastError && disabledReason !== "REQUESTED" && !isOver(webhook)
    ? [...sentences, t("webhooks.lastError", { error: lastError })]
    : sentences;
}

/** Returns which places the events of a webhook are limited to; null if they are not limited. */
export function limitsText({ communityIds, topicIds, jobIds }: Webhook, t: Translate): string | null {
  const places = [
    communityIds.length > 0 && t("webhooks.communityCount", { count: communityIds.length }),
    topicIds.length > 0 && t("webhooks.topicCount", { count: topicIds.length }),
    jobIds.length > 0 && t("webhooks.jobCount", { count: jobIds.length }),
  ].filter(Boolean);
  return places.length > 0 ? t("webhooks.limited", { places: places.join(t("list.comma")) }) : null;
}

export function lastDeliveryText(
  { lastDeliveredAt }: Webhook,
  t: Translate,
  language: Language,
  now: Date,
): string {
  return lastDeliveredAt
    ? t("webhooks.lastDelivery", { time: relativeTime(language, new Date(lastDeliveredAt), now) })
    : t("webhooks.neverDelivered");
}
