/** The organization's service keys: created, rotated and revoked here. A key is shown once. */
import { useCallback, useState } from "react";
import { request, useApi } from "../../api/api";
import { relativeTime, timeOrDate } from "../../i18n/times";
import { PAGE_SIZE } from "../../timeline/paged-list";
import { usePagedList } from "../../timeline/use-paged-list";
import { Badge } from "../../ui/badge";
import { Button } from "../../ui/button";
import { SecretDialog } from "../../ui/dialogs/secret-dialog";
import { Icon } from "../../ui/icons";
import { PagedRows } from "../../ui/paged-rows";
import { useTranslation } from "../../ui/preferences";
import { EmptyState } from "../../ui/states";
import { notify } from "../../ui/toasts";
import { KeyActions } from "./actions";
import { CreateServiceKeyDialog } from "./dialog";
import { type ServiceKey, ServiceKeys } from "./operations";

/** A key that was just issued. `secret` is null if the request was repeated. */
export interface IssuedKey {
  key: ServiceKey;
  secret: string | null;
}

const keyOf = ({ id }: ServiceKey) => id;

export function ServiceKeyList() {
  const { t } = useTranslation();
  const { direct } = useApi();
  const [isCreating, setIsCreating] = useState(false);
  const [issued, setIssued] = useState<IssuedKey | null>(null);
  const loadPage = useCallback(
    async (after: ServiceKey | null) =>
      (await request(direct, ServiceKeys, { after: after?.id ?? null, limit: PAGE_SIZE })).serviceKeys,
    [direct],
  );
  const keys = usePagedList(loadPage, keyOf);
  function showIssued(newlyIssued: IssuedKey) {
    setIssued(newlyIssued);
    if (newlyIssued.secret === null) notify(t("keys.alreadyShown"));
  }
  const replace = (changed: ServiceKey) => keys.change((key) => (key.id === changed.id ? changed : key));

  return (
    <>
      <div className="mb-2 flex items-start justify-between gap-4">
        <p className="text-quiet">{t("keys.hint")}</p>
        <Button kind="main" className="shrink-0" onClick={() => setIsCreating(true)}>
          <Icon name="plus" className="size-4" />
          {t("keys.new")}
        </Button>
      </div>
      <PagedRows
        list={keys}
        label={t("admin.keys")}
        empty={<EmptyState icon="key" title={t("keys.none")} hint={t("keys.noneHint")} />}
      >
        {(key) => (
          <ServiceKeyRow
            key={key.id}
            serviceKey={key}
            replace={replace}
            onIssued={(rotated) => {
              replace(rotated.key);
              showIssued(rotated);
            }}
          />
        )}
      </PagedRows>
      {isCreating && (
        <CreateServiceKeyDialog
          onClose={() => setIsCreating(false)}
          onIssued={(created) => {
            setIsCreating(false);
            showIssued(created);
            keys.reload();
          }}
        />
      )}
      {issued?.secret && (
        <SecretDialog
          title={t("keys.issued", { name: issued.key.name })}
          label={t("keys.key")}
          hint={t("keys.once")}
          secret={issued.secret}
          onClose={() => setIssued(null)}
        />
      )}
    </>
  );
}

interface KeyRowProps {
  serviceKey: ServiceKey;
  replace: (changed: ServiceKey) => void;
  onIssued: (issued: IssuedKey) => void;
}

function ServiceKeyRow({ serviceKey, replace, onIssued }: KeyRowProps) {
  const { t } = useTranslation();
  return (
    <li
      data-key={serviceKey.id}
      className="flex flex-wrap items-center gap-x-4 gap-y-2 border-b border-line py-3 sm:flex-nowrap"
    >
      <div className="min-w-0 grow">
        <p className="flex flex-wrap items-center gap-x-2 gap-y-1">
          <span className="font-semibold">{serviceKey.name}</span>
          <KeyStateBadge serviceKey={serviceKey} />
          {serviceKey.needsRotation && <Badge tone="bad">{t("keys.needsRotation")}</Badge>}
        </p>
        <p className="font-mono text-sm text-quiet">nrk_{serviceKey.account.id}_…</p>
        <p className="text-sm">{serviceKey.scopes.join(" · ")}</p>
        <KeyTimes serviceKey={serviceKey} />
      </div>
      {serviceKey.active && <KeyActions serviceKey={serviceKey} replace={replace} onIssued={onIssued} />}
    </li>
  );
}

function KeyStateBadge({ serviceKey }: { serviceKey: ServiceKey }) {
  const { t } = useTranslation();
  if (serviceKey.active) return <Badge tone="good">{t("keys.active")}</Badge>;
  return <Badge tone="bad">{t(serviceKey.revokedAt ? "keys.revoked" : "keys.expired")}</Badge>;
}

function KeyTimes({ serviceKey }: { serviceKey: ServiceKey }) {
  const { t, language } = useTranslation();
  const { createdAt, createdBy, lastUsedAt, expiresAt, previousSecretUntil } = serviceKey;
  const now = new Date();
  const texts = [
    t("keys.created", { time: relativeTime(language, new Date(createdAt), now) }),
    createdBy && t(createdBy.deactivated ? "keys.byDeactivated" : "keys.by", { name: createdBy.name }),
    lastUsedAt
      ? t("keys.used", { time: relativeTime(language, new Date(lastUsedAt), now) })
      : t("keys.neverUsed"),
    expiresAt && t("keys.expires", { time: timeOrDate(language, new Date(expiresAt), now) }),
    previousSecretUntil &&
      t("keys.previousUntil", { time: timeOrDate(language, new Date(previousSecretUntil), now) }),
  ];
  return <p className="text-sm text-quiet">{texts.filter(Boolean).join(" · ")}</p>;
}
