/** The state of a webhook: a badge, and a notice if it is disabled or failing. */
import { Badge } from "../../ui/badge";
import { Icon } from "../../ui/icons";
import { useTranslation } from "../../ui/preferences";
import type { Webhook } from "./operations";
import { noticeOf, STATE_TEXTS, stateOf, toneOf } from "./state";

export function WebhookBadge({ webhook }: { webhook: Webhook }) {
  const { t } = useTranslation();
  const state = stateOf(webhook);
  return (
    <span data-webhook-state={state}>
      <Badge tone={toneOf(webhook)}>{t(STATE_TEXTS[state])}</Badge>
    </span>
  );
}

const GROUNDS = {
  good: "",
  wait: "bg-wait-ground text-wait",
  bad: "bg-bad-ground text-bad",
  quiet: "bg-well text-ink",
} as const;

export function WebhookNotice({ webhook }: { webhook: Webhook }) {
  const { t, language } = useTranslation();
  const sentences = noticeOf(webhook, t, language, new Date());
  if (sentences.length === 0) return null;
  return (
    <div className={`mt-2 flex gap-2 rounded-card px-3 py-2 text-sm ${GROUNDS[toneOf(webhook)]}`}>
      <Icon name="alert" className="mt-0.5 size-4" />
      <div className="min-w-0">
        {sentences.map((sentence) => (
          <p key={sentence} className="break-words">
            {sentence}
          </p>
        ))}
      </div>
    </div>
  );
}
