/** The filters of the audit log. The chosen people are part of the page's URL, so that a link can name them. */
import { useQuery } from "urql";
import { navigate } from "../../app/router";
import { LabelledField } from "../../ui/fields/labelled-field";
import { PersonField } from "../../ui/fields/person-field";
import type { Person } from "../../ui/fields/person-option";
import { SelectField } from "../../ui/fields/select-field";
import { useTranslation } from "../../ui/preferences";
import { type AuditAction, UserName } from "../operations";
import { useUserSearch } from "../use-user-search";
import { actionName, auditActions } from "./sentence";

export interface AuditEntryFilter {
  action: AuditAction | null;
  /** The first and the last day, as YYYY-MM-DD in the browser's time zone; empty if there is no bound. */
  firstDay: string;
  lastDay: string;
}

export const NO_FILTER: AuditEntryFilter = { action: null, firstDay: "", lastDay: "" };

/** Returns the start of the day that is `daysLater` days after `day`, as an instant; null if `day` is no date. */
export function startOfDay(day: string, daysLater: number): string | null {
  if (!day) return null;
  const date = new Date(`${day}T00:00`);
  date.setDate(date.getDate() + daysLater);
  return Number.isNaN(date.getTime()) ? null : date.toISOString();
}

interface Props {
  actor: string | null;
  target: string | null;
  filter: AuditEntryFilter;
  onChange: (filter: AuditEntryFilter) => void;
}

export function AuditFilters({ actor, target, filter, onChange }: Props) {
  const { t } = useTranslation();
  const change = (part: Partial<AuditEntryFilter>) => onChange({ ...filter, ...part });
  const find = useUserSearch(null);
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
      <SelectField
        label={t("audit.action")}
        className="max-md:col-span-2"
        value={filter.action}
        values={auditActions()}
        textOf={(action) => actionName(action, t)}
        emptyText={t("admin.all")}
        onChange={(action) => change({ action })}
      />
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

/**
 * Returns the person with this id; null without an id. Until the name is loaded, and for a person who does not exist,
 * the id is the name.
 */
function usePerson(id: string | null): Person | null {
  const [{ data }] = useQuery({ query: UserName, variables: { id: id ?? "" }, pause: id === null });
  if (id === null) return null;
  return data?.user?.id === id ? data.user : { id, name: id, handle: id };
}
