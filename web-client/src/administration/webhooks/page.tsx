/** One webhook: its state, what it sends, its actions and its deliveries. */
import { useState } from "react";
import { hrefOf } from "../../app/router";
import { relativeTime, timeOrDate } from "../../i18n/times";
import { Icon } from "../../ui/icons";
import { PageTitle } from "../../ui/page-title";
import { useTranslation } from "../../ui/preferences";
import { WebhookActions } from "./actions";
import { WebhookDeliveryList } from "./delivery-list";
import { eventTypeName } from "./event-types";
import { WebhookBadge, WebhookNotice } from "./notice";
import type { Webhook, WebhookDelivery } from "./operations";
import type { WebhookChanges } from "./screen";
import { lastDeliveryText, limitsText } from "./state";

interface Props {
  webhook: Webhook;
  changes: WebhookChanges;
  onDeleted: () => void;
}

export function WebhookPage({ webhook, changes, onDeleted }: Props) {
  const [requested, setRequested] = useState<WebhookDelivery | null>(null);
  return (
    <section aria-labelledby="webhook-name">
      <PageTitle name={webhook.name} />
      <WebhookHeader webhook={webhook} />
      <WebhookNotice webhook={webhook} />
      <WebhookFacts webhook={webhook} />
      <WebhookActions webhook={webhook} changes={changes} onDeleted={onDeleted} onRequested={setRequested} />
      <WebhookDeliveryList
        webhookId={webhook.id}
        requested={requested}
        onRequested={setRequested}
        onOutcome={changes.reload}
      />
    </section>
  );
}

function WebhookHeader({ webhook }: { webhook: Webhook }) {
  const { t } = useTranslation();
  return (
    <header className="flex items-start gap-2">
      <a
        href={hrefOf({ name: "adminWebhooks", webhook: null })}
        aria-label={t("back")}
        className="-ml-2 shrink-0 rounded-full p-2 text-quiet hover:bg-hover"
      >
        <Icon name="back" />
      </a>
      <div className="flex min-w-0 flex-wrap items-center gap-x-2 gap-y-1 pt-1">
        <h2 id="webhook-name" className="min-w-0 break-words text-lg font-semibold">
          {webhook.name}
        </h2>
        <WebhookBadge webhook={webhook} />
      </div>
    </header>
  );
}

function WebhookFacts({ webhook }: { webhook: Webhook }) {
  const { t, language } = useTranslation();
  const now = new Date();
  const { format, account, createdAt, previousSecretUntil } = webhook;
  const limits = limitsText(webhook, t);
  const facts = [
    format !== "EVENT" && t(`webhooks.format.${format}`),
    t("webhooks.account", { name: account.name }),
    t("webhooks.created", { time: relativeTime(language, new Date(createdAt), now) }),
    lastDeliveryText(webhook, t, language, now),
    previousSecretUntil &&
      t("webhooks.previousUntil", { time: timeOrDate(language, new Date(previousSecretUntil), now) }),
  ];
  return (
    <div className="mt-2 text-sm">
      <p className="break-all font-mono text-quiet">{webhook.url}</p>
      <p>{webhook.eventTypes.map((type) => eventTypeName(type, t)).join(" · ")}</p>
      {limits && <p>{limits}</p>}
      <p className="text-quiet">{facts.filter(Boolean).join(" · ")}</p>
    </div>
  );
}
