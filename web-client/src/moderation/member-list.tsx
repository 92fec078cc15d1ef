/** The members of a community with their roles. A person can be found by name, also one who has not joined. */
import { useCallback, useState } from "react";
import { useQuery } from "urql";
import { request, useApi } from "../api/api";
import { hrefOf, navigate } from "../app/router";
import { timeOrDate } from "../i18n/times";
import { useViewer } from "../session/viewer";
import { PAGE_SIZE } from "../timeline/paged-list";
import { usePagedList } from "../timeline/use-paged-list";
import { Avatar } from "../ui/avatar";
import { Badge } from "../ui/badge";
import { LabelledField } from "../ui/labelled-field";
import { PagedRows } from "../ui/paged-rows";
import { PersonField } from "../ui/person-field";
import { useTranslation } from "../ui/preferences";
import { EmptyState } from "../ui/states";
import {
  type Community,
  CommunityMembers,
  type CommunityRole,
  FindPeople,
  type Member,
  type Person,
  PersonById,
} from "./operations";
import { PersonActions } from "./person-actions";
import { COMMUNITY_ROLES, type Powers } from "./powers";

interface Props {
  community: Community;
  powers: Powers;
  /** Id of the only person to show; null for all members. */
  personId: string | null;
  /** Called after the community has changed, such as its number of members. */
  onChanged: () => void;
}

const keyOf = (member: Member) => member.user.id;

export function MemberList({ community, powers, personId, onChanged }: Props) {
  const { t } = useTranslation();
  const { direct } = useApi();
  const [role, setRole] = useState<CommunityRole | null>(null);
  const [{ data }] = useQuery({
    query: PersonById,
    variables: { id: personId ?? "" },
    pause: personId === null,
  });
  const chosen =
    personId === null ? null : (data?.user ?? { id: personId, name: personId, handle: personId });
  const find = useCallback(
    async (query: string) => (await request(direct, FindPeople, { query, communityId: community.id })).users,
    [direct, community.id],
  );
  const loadPage = useCallback(
    async (after: Member | null) => {
      const variables = { id: community.id, role, userId: personId, after: after?.user.id ?? null };
      return (await request(direct, CommunityMembers, { ...variables, limit: PAGE_SIZE })).communityMembers;
    },
    [direct, community.id, role, personId],
  );
  const members = usePagedList(loadPage, keyOf);

  function replace(person: Person, changed: Member | null) {
    if (changed && members.items?.length === 0) members.reload();
    members.change((member) => (member.user.id === person.id ? changed : member));
    onChanged();
  }

  return (
    <>
      <search className="mb-3 grid grid-cols-[minmax(0,1fr)_9rem] gap-3">
        <PersonField
          label={t("members.find")}
          value={chosen}
          onChange={(person) =>
            navigate({ name: "community", id: community.id, tab: "members", person: person?.id ?? null })
          }
          find={find}
        />
        <LabelledField label={t("members.role")}>
          {(props) => (
            <select
              {...props}
              className="field"
              value={role ?? ""}
              onChange={(event) => setRole((event.target.value || null) as CommunityRole | null)}
            >
              <option value="">{t("admin.all")}</option>
              {COMMUNITY_ROLES.map((each) => (
                <option key={each} value={each}>
                  {t(`role.${each}`)}
                </option>
              ))}
            </select>
          )}
        </LabelledField>
      </search>
      <PagedRows
        list={members}
        label={t("members.title")}
        empty={
          chosen ? (
            <ul aria-label={t("members.title")}>
              <MemberRow
                person={chosen}
                member={null}
                community={community}
                powers={powers}
                onChanged={(changed) => replace(chosen, changed)}
              />
            </ul>
          ) : (
            <EmptyState icon="people" title={t("members.none")} hint={t("members.noneHint")} />
          )
        }
      >
        {(member) => (
          <MemberRow
            key={member.user.id}
            person={member.user}
            member={member}
            community={community}
            powers={powers}
            onChanged={(changed) => replace(member.user, changed)}
          />
        )}
      </PagedRows>
    </>
  );
}

interface RowProps {
  person: Person;
  member: Member | null;
  community: Community;
  powers: Powers;
  onChanged: (changed: Member | null) => void;
}

function MemberRow({ person, member, community, powers, onChanged }: RowProps) {
  const { t, language } = useTranslation();
  const isViewer = useViewer().id === person.id;
  return (
    <li data-member={person.id} className="flex items-center gap-3 border-b border-line py-3">
      <Avatar user={person} />
      <div className="min-w-0 grow">
        <p className="flex flex-wrap items-baseline gap-x-2">
          <a href={hrefOf({ name: "person", id: person.id })} className="font-semibold hover:underline">
            {person.name}
          </a>
          <span className="truncate text-sm text-quiet">@{person.handle}</span>
        </p>
        <p className="mt-1 flex flex-wrap gap-1 empty:hidden">
          {isViewer && <Badge tone="good">{t("admin.you")}</Badge>}
          {!member && <Badge tone="quiet">{t("members.notJoined")}</Badge>}
          {member && member.role !== "MEMBER" && (
            <Badge tone={member.role === "OWNER" ? "live" : "quiet"}>{t(`role.${member.role}`)}</Badge>
          )}
          {member?.mutedUntil && (
            <Badge tone="wait">
              {t("members.mutedUntil", {
                until: timeOrDate(language, new Date(member.mutedUntil), new Date()),
              })}
            </Badge>
          )}
        </p>
      </div>
      <PersonActions
        community={community}
        powers={powers}
        person={person}
        member={member}
        onChanged={onChanged}
      />
    </li>
  );
}
