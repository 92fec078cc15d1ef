/** The filters of the audit log. The people are part of the address, so that a filtered log can be linked. */
import { useCallback } from "react";
import { useQuery } from "urql";
import { request, useApi } from "../api/api";
import { navigate } from "../app/router";
import { LabelledField } from "../ui/labelled-field";
import { type Person, PersonField } from "../ui/person-field";
import { useTranslation } from "../ui/preferences";
import { ACTIONS, actionName } from "./audit-sentence";
import { type AuditAction, OrganizationUsers, UserName } from "./operations";

export interface EntryFilter {
  action: AuditAction | null;
  /** The first and the last day, as YYYY-MM-DD in the browser's time zone; empty if there is no bound. */
  firstDay: string;
  lastDay: string;
}

export const NO_FILTER: EntryFilter = { action: null, firstDay: "", lastDay: "" };

const SUGGESTIONS = 6;

/** Returns the beginning of a day, or of a day later, as an instant; null if there is no day. */
export function startOfDay(day: string, daysLater: number): string | null {
  if (!day) return null;
  const date = new Date(`${day}T00:00`);
  date.setDate(date.getDate() + daysLater);
  return Number.isNaN(date.getTime()) ? null : date.toISOString();
}

interface Props {
  actor: string | null;
  target: string | null;
  filter: EntryFilter;
  onChange: (filter: EntryFilter) => void;
}

export function AuditFilters({ actor, target, filter, onChange }: Props) {
  const { t } = useTranslation();
  const { direct } = useApi();
  const change = (part: Partial<EntryFilter>) => onChange({ ...filter, ...part });
  const find = useCallback(
    async (query: string) =>
      (await request(direct, OrganizationUsers, { query, limit: SUGGESTIONS })).organizationUsers,
    [direct],
  );
  return (
    <search className="mb-2 grid grid-cols-2 gap-3 md:grid-cols-3 lg:grid-cols-5">
      <PersonField
        label={t("audit.actor")}
        value={usePerson(actor)}
        onChange={(person) => navigate({ name: "adminAudit", actor: person?.id ?? null, target })}
        find={find}
      />
      <PersonField
        label={t("audit.target")}
        value={usePerson(target)}
        onChange={(person) => navigate({ name: "adminAudit", actor, target: person?.id ?? null })}
        find={find}
      />
      <LabelledField label={t("audit.action")} className="max-md:col-span-2">
        {(props) => (
          <select
            {...props}
            className="field"
            value={filter.action ?? ""}
            onChange={(event) => change({ action: (event.target.value || null) as AuditAction | null })}
          >
            <option value="">{t("admin.all")}</option>
            {ACTIONS.map((action) => (
              <option key={action} value={action}>
                {actionName(action, t)}
              </option>
            ))}
          </select>
        )}
      </LabelledField>
      {(["firstDay", "lastDay"] as const).map((name) => (
        <LabelledField key={name} label={t(`audit.${name}`)}>
          {(props) => (
            <input
              {...props}
              type="date"
              className="field min-w-0"
              value={filter[name]}
              onChange={(event) => change({ [name]: event.target.value })}
            />
          )}
        </LabelledField>
      ))}
    </search>
  );
}

/** Returns the person with this id. Until the name is loaded, and for a person who does not exist, the id is the name. */
function usePerson(id: string | null): Person | null {
  const [{ data }] = useQuery({ query: UserName, variables: { id: id ?? "" }, pause: id === null });
  if (id === null) return null;
  return data?.user?.id === id ? data.user : { id, name: id, handle: id };
}
