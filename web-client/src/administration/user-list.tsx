/** The organization's users: found by name, role and state. */
import { useCallback, useEffect, useState } from "react";
import { request, useApi } from "../api/api";
import { PAGE_SIZE } from "../timeline/paged-list";
import { usePagedList } from "../timeline/use-paged-list";
import { LabelledField } from "../ui/labelled-field";
import { PagedRows } from "../ui/paged-rows";
import { useTranslation } from "../ui/preferences";
import { EmptyState } from "../ui/states";
import { type AdministeredUser, OrganizationUsers, type Role } from "./operations";
import { ROLES } from "./roles-dialog";
import { UserRow } from "./user-row";

const TYPING_DELAY_MS = 200;
const STATES = ["active", "deactivated"] as const;
type State = (typeof STATES)[number];

const keyOf = (user: AdministeredUser) => user.id;

export function UserList() {
  const { t } = useTranslation();
  const { direct } = useApi();
  const [text, setText] = useState("");
  const [role, setRole] = useState<Role | null>(null);
  const [state, setState] = useState<State | null>(null);
  const query = useDelayed(text.trim(), TYPING_DELAY_MS);
  const loadPage = useCallback(
    async (after: AdministeredUser | null) => {
      const variables = {
        query: query || null,
        role,
        deactivated: state && state === "deactivated",
        after: after?.id ?? null,
        limit: PAGE_SIZE,
      };
      return (await request(direct, OrganizationUsers, variables)).organizationUsers;
    },
    [direct, query, role, state],
  );
  const users = usePagedList(loadPage, keyOf);
  const replace = (changed: AdministeredUser) =>
    users.change((user) => (user.id === changed.id ? changed : user));

  return (
    <>
      <search className="mb-3 grid grid-cols-2 gap-3 sm:grid-cols-[minmax(0,1fr)_10rem_10rem]">
        <LabelledField label={t("admin.findUser")} className="max-sm:col-span-2">
          {(props) => (
            <input
              {...props}
              type="search"
              className="field"
              placeholder={t("person.placeholder")}
              value={text}
              onChange={(event) => setText(event.target.value)}
            />
          )}
        </LabelledField>
        <LabelledField label={t("admin.role")}>
          {(props) => (
            <select
              {...props}
              className="field"
              value={role ?? ""}
              onChange={(event) => setRole((event.target.value || null) as Role | null)}
            >
              <option value="">{t("admin.all")}</option>
              {ROLES.map((each) => (
                <option key={each} value={each}>
                  {t(`role.${each}`)}
                </option>
              ))}
            </select>
          )}
        </LabelledField>
        <LabelledField label={t("admin.state")}>
          {(props) => (
            <select
              {...props}
              className="field"
              value={state ?? ""}
              onChange={(event) => setState((event.target.value || null) as State | null)}
            >
              <option value="">{t("admin.all")}</option>
              {STATES.map((each) => (
                <option key={each} value={each}>
                  {t(`admin.state.${each}`)}
                </option>
              ))}
            </select>
          )}
        </LabelledField>
      </search>
      <PagedRows
        list={users}
        label={t("admin.users")}
        empty={<EmptyState icon="people" title={t("admin.noUsers")} hint={t("admin.noUsersHint")} />}
      >
        {(user) => <UserRow key={user.id} user={user} replace={replace} />}
      </PagedRows>
    </>
  );
}

/** Returns the text once it has not changed for some time. */
function useDelayed(text: string, delay_ms: number): string {
  const [delayed, setDelayed] = useState(text);
  useEffect(() => {
    const timer = setTimeout(() => setDelayed(text), delay_ms);
    return () => clearTimeout(timer);
  }, [text, delay_ms]);
  return delayed;
}
