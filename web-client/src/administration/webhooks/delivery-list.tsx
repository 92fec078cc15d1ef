/** The deliveries of a webhook, the newest first. A requested delivery is loaded again until it has an outcome. */
import { useCallback, useEffect, useState } from "react";
import { request, useApi } from "../../api/api";
import { PAGE_SIZE } from "../../timeline/paged-list";
import { type PagedList, usePagedList } from "../../timeline/use-paged-list";
import { useRepeatedly } from "../../timeline/use-repeatedly";
import { SelectField } from "../../ui/fields/select-field";
import { PagedRows } from "../../ui/paged-rows";
import { useTranslation } from "../../ui/preferences";
import { EmptyState } from "../../ui/states";
import { notify } from "../../ui/toasts";
import { DeliveryRow } from "./delivery-row";
import { WebhookDeliveries, type WebhookDelivery } from "./operations";
import { waitForOutcome } from "./outcome";

const REFRESH_INTERVAL_MS = 10_000;
type Outcome = "FAILED";

const keyOf = ({ id }: WebhookDelivery) => id;

interface Props {
  webhookId: string;
  /** The delivery that was requested last; null before the first. */
  requested: WebhookDelivery | null;
  onRequested: (delivery: WebhookDelivery) => void;
  /** Called when a requested delivery has an outcome. */
  onOutcome: () => void;
}

export function WebhookDeliveryList({ webhookId, requested, onRequested, onOutcome }: Props) {
  const { t } = useTranslation();
  const [outcome, setOutcome] = useState<Outcome | null>(null);
  const deliveries = useDeliveries(webhookId, outcome);
  useRepeatedly(deliveries.loadNewest, REFRESH_INTERVAL_MS);
  useRequestedDelivery(webhookId, requested, deliveries.loadNewest, onOutcome);
  return (
    <>
      <div className="mt-6 flex flex-wrap items-end justify-between gap-3 border-b border-line pb-3">
        <div>
          <h3 className="font-semibold">{t("webhooks.deliveries")}</h3>
          <p className="text-sm text-quiet">{t("webhooks.deliveriesHint")}</p>
        </div>
        <SelectField<Outcome | null>
          label={t("webhooks.outcome")}
          className="w-40"
          value={outcome}
          values={["FAILED"]}
          textOf={(each) => t(`webhooks.deliveryOutcome.${each}`)}
          emptyText={t("admin.all")}
          onChange={setOutcome}
        />
      </div>
      <PagedRows
        list={deliveries}
        label={t("webhooks.deliveries")}
        empty={
          outcome ? (
            <p className="py-6 text-center text-quiet">{t("webhooks.noFailures")}</p>
          ) : (
            <EmptyState
              icon="list"
              title={t("webhooks.noDeliveries")}
              hint={t("webhooks.noDeliveriesHint")}
            />
          )
        }
      >
        {(delivery) => <DeliveryRow key={delivery.id} delivery={delivery} onRequested={onRequested} />}
      </PagedRows>
    </>
  );
}

function useDeliveries(id: string, outcome: Outcome | null): PagedList<WebhookDelivery> {
  const { direct } = useApi();
  const loadPage = useCallback(
    async (after: WebhookDelivery | null) => {
      const variables = { id, outcome, after: after?.id ?? null, limit: PAGE_SIZE };
      return (await request(direct, WebhookDeliveries, variables)).webhookDeliveries;
    },
    [direct, id, outcome],
  );
  return usePagedList(loadPage, keyOf);
}

/** Shows a requested delivery while it waits, and then says how it ended. */
function useRequestedDelivery(
  id: string,
  requested: WebhookDelivery | null,
  loadNewest: () => Promise<void>,
  onOutcome: () => void,
): void {
  const { t } = useTranslation();
  const { direct } = useApi();
  // biome-ignore lint/correctness/useExhaustiveDependencies: another filter or language does not begin anew.
  useEffect(() => {
    if (!requested) return;
    const left = new AbortController();
    const load = async () => {
      void loadNewest();
      return (await request(direct, WebhookDeliveries, { id, outcome: null, after: null, limit: PAGE_SIZE }))
        .webhookDeliveries;
    };
    void loadNewest();
    void waitForOutcome(requested.id, load, left.signal).then((delivery) => {
      if (left.signal.aborted) return;
      notify(t(`webhooks.sent.${delivery?.outcome ?? "WAITING"}`));
      void loadNewest();
      onOutcome();
    });
    return () => left.abort();
  }, [requested]);
}
