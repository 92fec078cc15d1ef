/** The menu of the viewer's actions on one person of a community. */
import { useState } from "react";
import { request, useApi } from "../api/api";
import { timeOrDate } from "../i18n/times";
import { useViewer } from "../session/viewer";
import { GivePackDialog } from "../stamps/give-dialog";
import { GiveStampPack, type StampPack } from "../stamps/operations";
import { ConfirmDialog } from "../ui/dialogs/confirm";
import { Menu } from "../ui/dialogs/menu";
import { useTranslation } from "../ui/preferences";
import { notify, notifyError } from "../ui/toasts";
import {
  AddMember,
  BanMember,
  type Community,
  type CommunityMember,
  type CommunityRole,
  KickMember,
  MuteMember,
  type Person,
  SetCommunityRole,
  UnmuteMember,
} from "./operations";
import { BanDialog, MuteDialog } from "./person-dialogs";
import { COMMUNITY_ROLES, type CommunityRights, mayActOn, mayModerate, maySetRoles } from "./rights";

interface Props {
  community: Community;
  rights: CommunityRights;
  person: Person;
  /** Null for a person who has not joined the community. */
  member: CommunityMember | null;
  /** Called after an action, with the changed member; with null if the person is not a member now. */
  onChanged: (member: CommunityMember | null) => void;
}

type PersonAction =
  | { name: "mute" | "unmute" | "kick" | "ban" | "add" | "givePack" }
  | { name: "role"; role: CommunityRole };

export function PersonActions(props: Props) {
  const { t } = useTranslation();
  const [openAction, setOpenAction] = useState<PersonAction | null>(null);
  const actions = usePersonActions(props);
  const perform = useActionFunctions(props);
  const { name } = props.person;
  if (actions.length === 0) return null;

  function choose(action: PersonAction) {
    if (action.name === "unmute") void perform.unmute();
    else if (action.name === "add") void perform.add();
    else if (action.name === "role" && action.role !== "OWNER") void perform.setRole(action.role);
    else setOpenAction(action);
  }
  const close = () => setOpenAction(null);
  return (
    <>
      <Menu
        label={t("person.actionsOn", { name })}
        items={actions.map((action) => ({
          key: action.name === "role" ? action.role : action.name,
          text: action.name === "role" ? t(`person.make.${action.role}`) : t(`person.${action.name}`),
          isDestructive: action.name === "ban" || action.name === "kick",
          run: () => choose(action),
        }))}
      />
      {openAction?.name === "mute" && (
        <MuteDialog name={name} onDone={(until) => (until ? perform.mute(until, close) : close())} />
      )}
      {openAction?.name === "ban" && (
        <BanDialog name={name} onDone={(ban) => (ban ? perform.ban(ban, close) : close())} />
      )}
      {openAction?.name === "givePack" && (
        <GivePackDialog name={name} onDone={(pack) => (pack ? perform.givePack(pack, close) : close())} />
      )}
      {openAction?.name === "kick" && (
        <ConfirmDialog
          title={t("person.kickNamed", { name })}
          text={t("person.kickAsk")}
          action={t("person.doKick")}
          onDone={(isConfirmed) => (isConfirmed ? perform.kick(close) : close())}
        />
      )}
      {openAction?.name === "role" && (
        <ConfirmDialog
          title={t("person.make.OWNER")}
          text={t("person.ownerAsk", { name })}
          action={t("person.make.OWNER")}
          kind="main"
          onDone={(isConfirmed) => (isConfirmed ? perform.setRole("OWNER", close) : close())}
        />
      )}
    </>
  );
}

/** Returns the actions that the viewer may choose from. */
function usePersonActions({ rights, person, member }: Props): PersonAction[] {
  const isViewer = useViewer().id === person.id;
  const actions: PersonAction[] = [];
  const role = member?.role ?? null;
  if (member && maySetRoles(rights))
    actions.push(
      ...COMMUNITY_ROLES.filter((each) => each !== role).map(
        (each) => ({ name: "role", role: each }) as const,
      ),
    );
  if (member && !isViewer && mayModerate(rights)) actions.push({ name: "givePack" });
  if (isViewer || !mayActOn(rights, role)) return actions;
  if (!member) return [...actions, { name: "add" }, { name: "ban" }];
  return [...actions, { name: member.mutedUntil ? "unmute" : "mute" }, { name: "kick" }, { name: "ban" }];
}

/** Returns functions that action on the person, show the result to the viewer, and call `onChanged`. */
function useActionFunctions({ community, person, member, onChanged }: Props) {
  const { t, language } = useTranslation();
  const { direct, cached } = useApi();
  const variables = { id: community.id, userId: person.id };
  const { name } = person;

  async function run(
    action: () => Promise<[CommunityMember | null, string]>,
    closeDialog: () => void = () => {},
  ) {
    closeDialog();
    try {
      const [changed, text] = await action();
      onChanged(changed);
      notify(text);
    } catch (error) {
      notifyError(error);
    }
  }
  return {
    add: () =>
      run(async () => [
        (await request(cached, AddMember, variables)).addMember,
        t("person.added", { name, community: community.name }),
      ]),
    setRole: (role: CommunityRole, closeDialog?: () => void) =>
      run(async () => {
        const changed = (await request(direct, SetCommunityRole, { ...variables, role })).setCommunityRole;
        return [changed, t("person.roleSet", { name, role: t(`role.${role}`) })];
      }, closeDialog),
    mute: (until: string, closeDialog: () => void) =>
      run(async () => {
        const muted = (await request(direct, MuteMember, { ...variables, until })).muteMember;
        return [muted, t("person.muted", { name, until: timeOrDate(language, new Date(until), new Date()) })];
      }, closeDialog),
    givePack: (pack: StampPack, closeDialog: () => void) =>
      run(async () => {
        const given = { packId: pack.id, userId: person.id, communityId: community.id };
        await request(cached, GiveStampPack, given);
        return [member, t("person.packGiven", { name, pack: pack.name })];
      }, closeDialog),
    unmute: () =>
      run(async () => {
        await request(direct, UnmuteMember, variables);
        return [member && { ...member, mutedUntil: null }, t("person.unmuted", { name })];
      }),
    kick: (closeDialog: () => void) =>
      run(async () => {
        await request(cached, KickMember, variables);
        return [null, t("person.kicked", { name })];
      }, closeDialog),
    ban: (ban: { reason: string; until: string | null }, closeDialog: () => void) =>
      run(async () => {
        await request(cached, BanMember, { ...variables, ...ban });
        return [null, t("person.banned", { name })];
      }, closeDialog),
  };
}
