/** What the audit log says about one change: a sentence, and the values that describe the change. */
import { CATALOGUES, type Language, type TextKey } from "../i18n/texts";
import { dateAndTime } from "../i18n/times";
import type { Translate } from "../ui/preferences";
import type { AuditAction, AuditEntry } from "./operations";

/** All kinds of changes that have a sentence. Others are shown by their name. */
export const ACTIONS: readonly AuditAction[] = [
  "USER_ROLES_SET",
  "USER_DEACTIVATED",
  "USER_REACTIVATED",
  "COMMUNITY_ROLE_SET",
  "COMMUNITY_MEMBER_KICKED",
  "COMMUNITY_MEMBER_BANNED",
  "COMMUNITY_MEMBER_UNBANNED",
  "COMMUNITY_MEMBER_MUTED",
  "COMMUNITY_MEMBER_UNMUTED",
  "COMMUNITY_MEMBER_ADDED",
  "COMMUNITY_JOIN_REFUSED",
  "COMMUNITY_CHANGED",
  "MESSAGE_DELETED",
  "COMMUNITY_ARCHIVED",
  "COMMUNITY_UNARCHIVED",
  "MESSAGE_PINNED",
  "MESSAGE_UNPINNED",
  "TOPIC_SLOW_MODE_SET",
  "CONTENT_REPORT_DECIDED",
  "FIRST_ADMIN_CREATED",
  "INVITATION_CREATED",
  "INVITATION_REVOKED",
  "INVITATION_ACCEPTED",
  "PASSWORD_CHANGED",
  "USER_ERASED",
  "SERVICE_KEY_CREATED",
  "SERVICE_KEY_ROTATED",
  "SERVICE_KEY_REVOKED",
];

const INSTANT = /^\d{4}-\d\d-\d\dT[\d:.]+(Z|[+-]\d\d:\d\d)$/;

type Described = Pick<AuditEntry, "action" | "details">;

function textKey(key: string): TextKey | null {
  return key in CATALOGUES.en ? (key as TextKey) : null;
}

export function detailOf({ details }: Described, name: string): string | null {
  return details.find((detail) => detail.name === name)?.value || null;
}

/** Returns the sentence with placeholders such as {actor}. An unknown kind of change is shown by its name. */
export function sentenceOf(entry: Described, t: Translate): string {
  const variant = detailOf(entry, "until") ? textKey(`audit.${entry.action}.until`) : null;
  const key = variant ?? textKey(`audit.${entry.action}`);
  return key ? t(key) : t("audit.unknown");
}

/** Returns the name of a kind of change, for a list to choose from. */
export function actionName(action: AuditAction, t: Translate): string {
  const key = textKey(`auditAction.${action}`);
  return key ? t(key) : action;
}

/** Returns the name of a detail; the server's own name for an unknown one. */
export function detailName(name: string, t: Translate): string {
  const key = textKey(`auditDetail.${name}`);
  return key ? t(key) : name;
}

/** Returns the value of a detail in the viewer's language, where it is a known name or an instant. */
export function detailValue(name: string, value: string, t: Translate, language: Language): string {
  if (name === "role") return roleNames(value, t);
  const key = textKey(`auditValue.${value}`);
  if (key) return t(key);
  return INSTANT.test(value) ? dateAndTime(language, new Date(value)) : value;
}

/** Returns the names of roles that are separated by commas. Unknown roles stay as they are. */
export function roleNames(roles: string, t: Translate): string {
  return roles
    .split(/,\s*/)
    .map((role) => {
      const key = textKey(`role.${role}`);
      return key ? t(key) : role;
    })
    .join(t("list.comma"));
}
