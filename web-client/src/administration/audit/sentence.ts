/** The texts of one entry of the audit log: a sentence, and the values that describe the change. */
import { type Language, type TextKey, textKeys } from "../../i18n/texts";
import { dateAndTime } from "../../i18n/times";
import type { Translate } from "../../ui/preferences";
import type { AuditAction, AuditEntry } from "../operations";

const ACTION_PREFIX = "auditAction.";

/** Returns all kinds of changes that have a name in the texts. Other kinds are shown by the server's name. */
export function auditActions(): AuditAction[] {
  const keys = textKeys().filter((key) => key.startsWith(ACTION_PREFIX));
  return keys.map((key) => key.slice(ACTION_PREFIX.length)) as AuditAction[];
}

const INSTANT = /^\d{4}-\d\d-\d\dT[\d:.]+(Z|[+-]\d\d:\d\d)$/;

type EntryContent = Pick<AuditEntry, "action" | "details">;

function textKey(key: string): TextKey | null {
  return textKeys().find((each) => each === key) ?? null;
}

export function detailOf({ details }: EntryContent, name: string): string | null {
  return details.find((detail) => detail.name === name)?.value || null;
}

/** Returns the sentence with placeholders such as {actor}. An unknown kind of change is shown by its name. */
export function sentenceOf(entry: EntryContent, t: Translate): string {
  const variant = detailOf(entry, "until") ? textKey(`audit.${entry.action}.until`) : null;
  const key = variant ?? textKey(`audit.${entry.action}`);
  return key ? t(key) : t("audit.unknown");
}

/** Returns the name of a kind of change, for a list to choose from. */
export function actionName(action: AuditAction, t: Translate): string {
  const key = textKey(`auditAction.${action}`);
  return key ? t(key) : action;
}

/** Returns the name of a detail; the server's name for an unknown detail. */
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
