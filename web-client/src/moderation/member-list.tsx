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
import { PersonField } from "../ui/fields/person-field";
import { SelectField } from "../ui/fields/select-field";
import { PagedRows } from "../ui/paged-rows";
import { useTranslation } from "../ui/preferences";
import { EmptyState } from "../ui/states";
import {
  type Community,
  type CommunityMember,
  CommunityMembers,
  type CommunityRole,
  FindPeople,
  type Person,
  PersonById,
} from "./operations";
import { PersonActions } from "./person-actions";
import { COMMUNITY_ROLES, type CommunityRights } from "./rights";

interface Props {
  community: Community;
  rights: CommunityRights;
  /** Id of the only person to show; null for all members. */
  personId: string | null;
  /** Called after an action on a person, which may have changed the number of members. */
  onChanged: () => void;
}

const keyOf = (member: CommunityMember) => member.user.id;

export function MemberList({ community, rights, personId, onChanged }: Props) {
  const { t } = useTranslation();
  const { direct } = useApi();
  const [role, setRole] = useState<CommunityRole | null>(null);
  const [{ data }] = useQuery({
    query: PersonById,
    variables: { id: personId ?? "" },
    pause: personId === null,
  });
  const chosen =
    personId === null
      ? null
      : (data?.user ?? { id: personId, name: personId, handle: personId, avatarUrl: null });
  const find = useCallback(
    async (query: string) => (await request(direct, FindPeople, { query, communityId: community.id })).users,
    [direct, community.id],
  );
  const loadPage = useCallback(
    async (after: CommunityMember | null) => {
      const variables = { id: community.id, role, userId: personId, after: after?.user.id ?? null };
      return (await request(direct, CommunityMembers, { ...variables, limit: PAGE_SIZE })).communityMembers;
    },
    [direct, community.id, role, personId],
  );
  const members = usePagedList(loadPage, keyOf);

  function replace(person: Person, changed: CommunityMember | null) {
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
        <SelectField
          label={t("members.role")}
          value={role}
          values={COMMUNITY_ROLES}
          textOf={(each) => t(`role.${each}`)}
          emptyText={t("admin.all")}
          onChange={setRole}
        />
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
                rights={rights}
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
            rights={rights}
            onChanged={(changed) => replace(member.user, changed)}
          />
        )}
      </PagedRows>
    </>
  );
}

interface MemberRowProps {
  person: Person;
  member: CommunityMember | null;
  community: Community;
  rights: CommunityRights;
  onChanged: (changed: CommunityMember | null) => void;
}

function MemberRow({ person, member, community, rights, onChanged }: MemberRowProps) {
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
        rights={rights}
        person={person}
        member={member}
        onChanged={onChanged}
      />
    </li>
  );
}
