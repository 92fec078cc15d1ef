/** The list of webhooks, those in trouble first. A webhook is created here. */
import { useState } from "react";
import { hrefOf } from "../../app/router";
import { Button } from "../../ui/button";
import { Icon } from "../../ui/icons";
import { useTranslation } from "../../ui/preferences";
import { EmptyState } from "../../ui/states";
import { WebhookDialog } from "./dialog";
import { WebhookBadge, WebhookNotice } from "./notice";
import type { Webhook } from "./operations";
import type { WebhookChanges } from "./screen";
import { lastDeliveryText, troubledFirst } from "./state";

interface Props {
  webhooks: readonly Webhook[];
  changes: WebhookChanges;
}

export function WebhookList({ webhooks, changes }: Props) {
  const { t } = useTranslation();
  const [isCreating, setIsCreating] = useState(false);
  return (
    <>
      <div className="mb-2 flex items-start justify-between gap-x-4 gap-y-2 max-sm:flex-col">
        <p className="text-quiet">{t("webhooks.hint")}</p>
        <Button kind="main" className="shrink-0" onClick={() => setIsCreating(true)}>
          <Icon name="plus" className="size-4" />
          {t("webhooks.new")}
        </Button>
      </div>
      {webhooks.length === 0 ? (
        <EmptyState icon="link" title={t("webhooks.none")} hint={t("webhooks.noneHint")} />
      ) : (
        <ul aria-label={t("admin.webhooks")}>
          {troubledFirst(webhooks).map((webhook) => (
            <WebhookRow key={webhook.id} webhook={webhook} />
          ))}
        </ul>
      )}
      {isCreating && (
        <WebhookDialog
          webhook={null}
          onClose={() => setIsCreating(false)}
          onSaved={(issued) => {
            setIsCreating(false);
            changes.putIssued(issued);
          }}
        />
      )}
    </>
  );
}

function WebhookRow({ webhook }: { webhook: Webhook }) {
  const { t, language } = useTranslation();
  return (
    <li data-webhook={webhook.id} className="border-b border-line py-3">
      <p className="flex flex-wrap items-center gap-x-2 gap-y-1">
        <a
          href={hrefOf({ name: "adminWebhooks", webhook: webhook.id })}
          className="font-semibold hover:underline"
        >
          {webhook.name}
        </a>
        <WebhookBadge webhook={webhook} />
      </p>
      <p className="break-all font-mono text-sm text-quiet">{webhook.url}</p>
      <p className="text-sm text-quiet">{lastDeliveryText(webhook, t, language, new Date())}</p>
      <WebhookNotice webhook={webhook} />
    </li>
  );
}
