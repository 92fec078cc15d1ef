/** The URL of the audit log as a file. */
import type { AuditAction } from "../operations";

export interface AuditCriteria {
  actorId: string | null;
  targetId: string | null;
  action: AuditAction | null;
  /** The earliest instant, included; null if there is no bound. */
  since: string | null;
  /** The latest instant, excluded; null if there is no bound. */
  until: string | null;
}

/** Returns the URL of the entries that match all criteria. Criteria that are null match every entry. */
export function auditAddress(criteria: AuditCriteria): string {
  const parameters = Object.entries(criteria).filter((pair): pair is [string, string] => pair[1] !== null);
  return `/audit.ndjson?${new URLSearchParams(parameters)}`;
}
