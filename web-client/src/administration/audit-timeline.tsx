/** The audit log as a timeline, the newest change first. New changes appear while the screen is open. */
import { useCallback, useEffect, useState } from "react";
import { request, useApi } from "../api/api";
import type { AuditPlace } from "../app/router";
import { dayLabel, isSameDay } from "../i18n/times";
import { PAGE_SIZE } from "../timeline/paged-list";
import { usePagedList } from "../timeline/use-paged-list";
import { PagedRows } from "../ui/paged-rows";
import { useTranslation } from "../ui/preferences";
import { EmptyState } from "../ui/states";
import { AuditEntryRow } from "./audit-entry";
import { AuditFilters, type EntryFilter, NO_FILTER, startOfDay } from "./audit-filters";
import { type AuditEntry, AuditLog } from "./operations";

const REFRESH_INTERVAL_MS = 10_000;

const keyOf = (entry: AuditEntry) => entry.id;

export function AuditTimeline({ place: { actor, target } }: { place: AuditPlace }) {
  const { t } = useTranslation();
  const { direct } = useApi();
  const [filter, setFilter] = useState<EntryFilter>(NO_FILTER);
  const { action, firstDay, lastDay } = filter;
  const loadPage = useCallback(
    async (after: AuditEntry | null) => {
      const variables = {
        actorId: actor,
        targetId: target,
        action,
        since: startOfDay(firstDay, 0),
        until: startOfDay(lastDay, 1),
        after: after?.id ?? null,
        limit: PAGE_SIZE,
      };
      return (await request(direct, AuditLog, variables)).auditLog;
    },
    [direct, actor, target, action, firstDay, lastDay],
  );
  const entries = usePagedList(loadPage, keyOf);
  useRepeatedly(entries.loadNewest, REFRESH_INTERVAL_MS);
  return (
    <>
      <AuditFilters actor={actor} target={target} filter={filter} onChange={setFilter} />
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

/** Calls a function in intervals while the page is visible. */
function useRepeatedly(run: () => Promise<void>, interval_ms: number): void {
  useEffect(() => {
    const timer = setInterval(() => document.visibilityState === "visible" && void run(), interval_ms);
    return () => clearInterval(timer);
  }, [run, interval_ms]);
}
