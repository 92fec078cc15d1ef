/** The organization's service keys: created, rotated and revoked here. A key is shown once. */
import { useCallback, useState } from "react";
import { request, useApi } from "../api/api";
import { relativeTime, timeOrDate } from "../i18n/times";
import { PAGE_SIZE } from "../timeline/paged-list";
import { usePagedList } from "../timeline/use-paged-list";
import { Badge } from "../ui/badge";
import { Button } from "../ui/button";
import { Icon } from "../ui/icons";
import { PagedRows } from "../ui/paged-rows";
import { useTranslation } from "../ui/preferences";
import { SecretDialog } from "../ui/secret-dialog";
import { EmptyState } from "../ui/states";
import { KeyActions } from "./key-actions";
import { KeyDialog } from "./key-dialog";
import { type ServiceKey, ServiceKeys } from "./key-operations";

/** A key that was just issued. `secret` is null if the request was repeated. */
export interface IssuedKey {
  key: ServiceKey;
  secret: string | null;
}

const keyOf = ({ id }: ServiceKey) => id;

export function KeyList() {
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
          <KeyRow
            key={key.id}
            serviceKey={key}
            replace={replace}
            onIssued={(rotated) => {
              replace(rotated.key);
              setIssued(rotated);
            }}
          />
        )}
      </PagedRows>
      {isCreating && (
        <KeyDialog
          onClose={() => setIsCreating(false)}
          onIssued={(created) => {
            setIsCreating(false);
            setIssued(created);
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

interface RowProps {
  serviceKey: ServiceKey;
  replace: (changed: ServiceKey) => void;
  onIssued: (issued: IssuedKey) => void;
}

function KeyRow({ serviceKey, replace, onIssued }: RowProps) {
  return (
    <li
      data-key={serviceKey.id}
      className="flex flex-wrap items-center gap-x-4 gap-y-2 border-b border-line py-3 sm:flex-nowrap"
    >
      <div className="min-w-0 grow">
        <p className="flex flex-wrap items-center gap-x-2 gap-y-1">
          <span className="font-semibold">{serviceKey.name}</span>
          <StateBadge serviceKey={serviceKey} />
        </p>
        <p className="font-mono text-sm text-quiet">nrk_{serviceKey.id}_…</p>
        <p className="text-sm">{serviceKey.scopes.join(" · ")}</p>
        <Times serviceKey={serviceKey} />
      </div>
      {serviceKey.active && <KeyActions serviceKey={serviceKey} replace={replace} onIssued={onIssued} />}
    </li>
  );
}

function StateBadge({ serviceKey }: { serviceKey: ServiceKey }) {
  const { t } = useTranslation();
  if (serviceKey.active) return <Badge tone="good">{t("keys.active")}</Badge>;
  return <Badge tone="bad">{t(serviceKey.revokedAt ? "keys.revoked" : "keys.expired")}</Badge>;
}

function Times({ serviceKey }: { serviceKey: ServiceKey }) {
  const { t, language } = useTranslation();
  const { createdAt, lastUsedAt, expiresAt, previousSecretUntil } = serviceKey;
  const now = new Date();
  const texts = [
    t("keys.created", { time: relativeTime(language, new Date(createdAt), now) }),
    lastUsedAt
      ? t("keys.used", { time: relativeTime(language, new Date(lastUsedAt), now) })
      : t("keys.neverUsed"),
    expiresAt && t("keys.expires", { time: timeOrDate(language, new Date(expiresAt), now) }),
    previousSecretUntil &&
      t("keys.previousUntil", { time: timeOrDate(language, new Date(previousSecretUntil), now) }),
  ];
  return <p className="text-sm text-quiet">{texts.filter(Boolean).join(" · ")}</p>;
}
