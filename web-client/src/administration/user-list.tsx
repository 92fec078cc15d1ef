/** The organization's users: found by name, role and state. */
import { useCallback, useEffect, useState } from "react";
import { request, useApi } from "../api/api";
import { PAGE_SIZE } from "../timeline/paged-list";
import { usePagedList } from "../timeline/use-paged-list";
import { LabelledField } from "../ui/fields/labelled-field";
import { SelectField } from "../ui/fields/select-field";
import { PagedRows } from "../ui/paged-rows";
import { useTranslation } from "../ui/preferences";
import { EmptyState } from "../ui/states";
import { type AdministeredUser, type OrganizationRole, OrganizationUsers } from "./operations";
import { ROLES } from "./roles-dialog";
import { UserRow } from "./user-row";

const TYPING_DELAY_MS = 200;
const STATES = ["active", "deactivated"] as const;
type UserState = (typeof STATES)[number];

const keyOf = (user: AdministeredUser) => user.id;

export function UserList() {
  const { t } = useTranslation();
  const { direct } = useApi();
  const [text, setText] = useState("");
  const [role, setRole] = useState<OrganizationRole | null>(null);
  const [state, setState] = useState<UserState | null>(null);
  const query = useDelayed(text.trim(), TYPING_DELAY_MS);
  const loadPage = useCallback(
    async (after: AdministeredUser | null) => {
      const variables = {
        query: query || null,
        role,
        deactivated: state === null ? null : state === "deactivated",
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
        <SelectField
          label={t("admin.role")}
          value={role}
          values={ROLES}
          textOf={(each) => t(`role.${each}`)}
          emptyText={t("admin.all")}
          onChange={setRole}
        />
        <SelectField
          label={t("admin.state")}
          value={state}
          values={STATES}
          textOf={(each) => t(`admin.state.${each}`)}
          emptyText={t("admin.all")}
          onChange={setState}
        />
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
