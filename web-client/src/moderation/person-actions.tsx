/** The menu of what the viewer may do about one person of a community. */
import { useState } from "react";
import { request, useApi } from "../api/api";
import { rejectionText } from "../api/failure";
import { ConfirmDialog } from "../chat/confirm";
import { timeOrDate } from "../i18n/times";
import { useViewer } from "../session/viewer";
import { IconButton } from "../ui/button";
import { Popover } from "../ui/popover";
import { useTranslation } from "../ui/preferences";
import { notify, notifyFailure } from "../ui/toasts";
import {
  AddMember,
  BanMember,
  type Community,
  type CommunityRole,
  KickMember,
  type Member,
  MuteMember,
  type Person,
  SetCommunityRole,
  UnmuteMember,
} from "./operations";
import { BanDialog, MuteDialog } from "./person-dialogs";
import { COMMUNITY_ROLES, mayActOn, maySetRoles, type Powers } from "./powers";

interface Props {
  community: Community;
  powers: Powers;
  person: Person;
  /** Null for a person who has not joined the community. */
  member: Member | null;
  /** Called after an act; with null if the person is no member any more. */
  onChanged: (member: Member | null) => void;
}

type Act = { name: "mute" | "unmute" | "kick" | "ban" | "add" } | { name: "role"; role: CommunityRole };

export function PersonActions(props: Props) {
  const { t } = useTranslation();
  const [openAct, setOpenAct] = useState<Act | null>(null);
  const acts = useActs(props);
  const actsOn = useActsOn(props);
  const { name } = props.person;
  if (acts.length === 0) return null;

  function choose(act: Act) {
    if (act.name === "unmute") void actsOn.unmute();
    else if (act.name === "add") void actsOn.add();
    else if (act.name === "role" && act.role !== "OWNER") void actsOn.setRole(act.role);
    else setOpenAct(act);
  }
  const close = () => setOpenAct(null);
  return (
    <>
      <Popover
        label={t("person.actionsOn", { name })}
        trigger={(trigger) => <IconButton icon="more" label={t("person.actionsOn", { name })} {...trigger} />}
      >
        {(closeMenu) => (
          <ul className="flex min-w-44 flex-col">
            {acts.map((act) => (
              <li key={act.name === "role" ? act.role : act.name}>
                <button
                  type="button"
                  className={`w-full rounded-lg px-3 py-2 text-left hover:bg-hover ${act.name === "ban" || act.name === "kick" ? "text-bad" : ""}`}
                  onClick={() => {
                    closeMenu();
                    choose(act);
                  }}
                >
                  {act.name === "role" ? t(`person.make.${act.role}`) : t(`person.${act.name}`)}
                </button>
              </li>
            ))}
          </ul>
        )}
      </Popover>
      {openAct?.name === "mute" && (
        <MuteDialog name={name} onDone={(until) => (until ? actsOn.mute(until, close) : close())} />
      )}
      {openAct?.name === "ban" && (
        <BanDialog name={name} onDone={(ban) => (ban ? actsOn.ban(ban, close) : close())} />
      )}
      {openAct?.name === "kick" && (
        <ConfirmDialog
          title={t("person.kickNamed", { name })}
          text={t("person.kickAsk")}
          action={t("person.doKick")}
          onDone={(isConfirmed) => (isConfirmed ? actsOn.kick(close) : close())}
        />
      )}
      {openAct?.name === "role" && (
        <ConfirmDialog
          title={t("person.make.OWNER")}
          text={t("person.ownerAsk", { name })}
          action={t("person.make.OWNER")}
          kind="main"
          onDone={(isConfirmed) => (isConfirmed ? actsOn.setRole("OWNER", close) : close())}
        />
      )}
    </>
  );
}

/** Returns the acts that the viewer may choose from. */
function useActs({ powers, person, member }: Props): Act[] {
  const isViewer = useViewer().id === person.id;
  const acts: Act[] = [];
  const role = member?.role ?? null;
  if (member && maySetRoles(powers))
    acts.push(
      ...COMMUNITY_ROLES.filter((each) => each !== role).map(
        (each) => ({ name: "role", role: each }) as const,
      ),
    );
  if (isViewer || !mayActOn(powers, role)) return acts;
  if (!member) return [...acts, { name: "add" }, { name: "ban" }];
  return [...acts, { name: member.mutedUntil ? "unmute" : "mute" }, { name: "kick" }, { name: "ban" }];
}

/** Returns functions that act on the person, tell the viewer about it, and report the changed member. */
function useActsOn({ community, person, member, onChanged }: Props) {
  const { t, language } = useTranslation();
  const { direct, cached } = useApi();
  const variables = { id: community.id, userId: person.id };
  const { name } = person;

  async function run(act: () => Promise<[Member | null, string]>, done: () => void = () => {}) {
    done();
    try {
      const [changed, text] = await act();
      onChanged(changed);
      notify(text);
    } catch (error) {
      const rejection = rejectionText(error);
      if (rejection) notify(rejection);
      else notifyFailure(error);
    }
  }
  return {
    add: () =>
      run(async () => [
        (await request(cached, AddMember, variables)).addMember,
        t("person.added", { name, community: community.name }),
      ]),
    setRole: (role: CommunityRole, done?: () => void) =>
      run(async () => {
        const changed = (await request(direct, SetCommunityRole, { ...variables, role })).setCommunityRole;
        return [changed, t("person.roleSet", { name, role: t(`role.${role}`) })];
      }, done),
    mute: (until: string, done: () => void) =>
      run(async () => {
        const muted = (await request(direct, MuteMember, { ...variables, until })).muteMember;
        return [muted, t("person.muted", { name, until: timeOrDate(language, new Date(until), new Date()) })];
      }, done),
    unmute: () =>
      run(async () => {
        await request(direct, UnmuteMember, variables);
        return [member && { ...member, mutedUntil: null }, t("person.unmuted", { name })];
      }),
    kick: (done: () => void) =>
      run(async () => {
        await request(cached, KickMember, variables);
        return [null, t("person.kicked", { name })];
      }, done),
    ban: (ban: { reason: string; until: string | null }, done: () => void) =>
      run(async () => {
        await request(cached, BanMember, { ...variables, ...ban });
        return [null, t("person.banned", { name })];
      }, done),
  };
}
