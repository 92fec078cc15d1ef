/** The organization's webhooks: their list, and the page of one of them. They are loaded again at intervals. */
import "../../i18n/webhook-texts";
import { useCallback, useEffect, useState } from "react";
import { request, useApi } from "../../api/api";
import { navigate, type WebhooksRoute } from "../../app/router";
import { useRepeatedly } from "../../timeline/use-repeatedly";
import { SecretDialog } from "../../ui/dialogs/secret-dialog";
import { useTranslation } from "../../ui/preferences";
import { EmptyState, ErrorState, LoadingState } from "../../ui/states";
import { notify } from "../../ui/toasts";
import { WebhookList } from "./list";
import { type IssuedWebhook, type Webhook, Webhooks } from "./operations";
import { WebhookPage } from "./page";

const REFRESH_INTERVAL_MS = 10_000;

/** What the list and the page do with webhooks. */
export interface WebhookChanges {
  /** Shows a changed or new webhook. */
  put: (webhook: Webhook) => void;
  /** Shows a webhook with its new secret, which can't be read again. */
  putIssued: (issued: IssuedWebhook) => void;
  reload: () => void;
}

export function WebhooksScreen({ route }: { route: WebhooksRoute }) {
  const { t } = useTranslation();
  const { webhooks, error, changes, issued, closeIssued } = useWebhooks();
  const open = webhooks?.find(({ id }) => id === route.webhook);
  return (
    <>
      {!webhooks ? (
        error ? (
          <ErrorState error={error} retry={changes.reload} />
        ) : (
          <LoadingState />
        )
      ) : route.webhook === null ? (
        <WebhookList webhooks={webhooks} changes={changes} />
      ) : open ? (
        <WebhookPage
          key={open.id}
          webhook={open}
          changes={changes}
          onDeleted={() => {
            navigate({ name: "adminWebhooks", webhook: null });
            changes.reload();
          }}
        />
      ) : (
        <EmptyState icon="link" title={t("webhooks.notFound")} hint={t("webhooks.notFoundHint")} />
      )}
      {issued?.secret && (
        <SecretDialog
          title={t("webhooks.issued", { name: issued.webhook.name })}
          label={t("webhooks.secret")}
          hint={t("webhooks.once")}
          secret={issued.secret}
          onClose={closeIssued}
        />
      )}
    </>
  );
}

function useWebhooks() {
  const { t } = useTranslation();
  const { direct } = useApi();
  const [webhooks, setWebhooks] = useState<readonly Webhook[] | null>(null);
  const [error, setError] = useState<unknown>(null);
  const [issued, setIssued] = useState<IssuedWebhook | null>(null);
  const reload = useCallback(
    () =>
      request(direct, Webhooks, {}).then((answer) => {
        setWebhooks(answer.webhooks);
        setError(null);
      }, setError),
    [direct],
  );
  useEffect(() => void reload(), [reload]);
  useRepeatedly(reload, REFRESH_INTERVAL_MS);

  function put(changed: Webhook) {
    setWebhooks((before) => {
      const isKnown = before?.some(({ id }) => id === changed.id);
      return isKnown
        ? (before ?? []).map((each) => (each.id === changed.id ? changed : each))
        : [changed, ...(before ?? [])];
    });
  }
  function putIssued(newlyIssued: IssuedWebhook) {
    put(newlyIssued.webhook);
    setIssued(newlyIssued);
    if (newlyIssued.secret === null) notify(t("webhooks.alreadyShown"));
  }
  return { webhooks, error, issued, closeIssued: () => setIssued(null), changes: { put, putIssued, reload } };
}
