/** The audit log as a timeline, the newest change first. New changes appear while the screen is open. */
import { useCallback, useMemo, useState } from "react";
import { request, useApi } from "../../api/api";
import type { AuditRoute } from "../../app/router";
import { dayLabel, isSameDay } from "../../i18n/times";
import { PAGE_SIZE } from "../../timeline/paged-list";
import { usePagedList } from "../../timeline/use-paged-list";
import { useRepeatedly } from "../../timeline/use-repeatedly";
import { PagedRows } from "../../ui/paged-rows";
import { useTranslation } from "../../ui/preferences";
import { EmptyState } from "../../ui/states";
import { type AuditEntry, AuditLog } from "../operations";
import { AuditDownload } from "./download";
import { AuditEntryRow } from "./entry";
import { type AuditEntryFilter, AuditFilters, NO_FILTER, startOfDay } from "./filters";

const REFRESH_INTERVAL_MS = 10_000;

const keyOf = (entry: AuditEntry) => entry.id;

export function AuditTimeline({ route: { actor, target } }: { route: AuditRoute }) {
  const { t } = useTranslation();
  const { direct } = useApi();
  const [filter, setFilter] = useState<AuditEntryFilter>(NO_FILTER);
  const { action, firstDay, lastDay } = filter;
  const criteria = useMemo(
    () => ({
      actorId: actor,
      targetId: target,
      action,
      since: startOfDay(firstDay, 0),
      until: startOfDay(lastDay, 1),
    }),
    [actor, target, action, firstDay, lastDay],
  );
  const loadPage = useCallback(
    async (after: AuditEntry | null) => {
      const variables = { ...criteria, after: after?.id ?? null, limit: PAGE_SIZE };
      return (await request(direct, AuditLog, variables)).auditLog;
    },
    [direct, criteria],
  );
  const entries = usePagedList(loadPage, keyOf);
  useRepeatedly(entries.loadNewest, REFRESH_INTERVAL_MS);
  return (
    <>
      <AuditFilters actor={actor} target={target} filter={filter} onChange={setFilter} />
      <AuditDownload criteria={criteria} />
      <PagedRows
        list={entries}
        label={t("admin.audit")}
        empty={<EmptyState icon="list" title={t("audit.none")} hint={t("audit.noneHint")} />}
      >
        {(entry, previous) => (
          <li key={entry.id}>
            <DayHeading at={entry.at} previous={previous?.at} />
            <AuditEntryRow entry={entry} />
          </li>
        )}
      </PagedRows>
    </>
  );
}

function DayHeading({ at, previous }: { at: string; previous: string | undefined }) {
  const { language } = useTranslation();
  const day = new Date(at);
  if (previous !== undefined && isSameDay(day, new Date(previous))) return null;
  return (
    <h2 className="mt-4 border-b border-line pb-1 text-sm font-semibold text-quiet">
      {dayLabel(language, day, new Date())}
    </h2>
  );
}
