/** The people of a conversation, as the viewer reads their names. */
import type { Translate } from "../../ui/preferences";
import type { Conversation } from "./operations";

const NAMES_MAX = 3;

type Person = Conversation["people"][number]["user"];

/** Returns the people other than the viewer. */
export function otherPeople({ people }: Conversation, viewerId: string): Person[] {
  return people.map(({ user }) => user).filter(({ id }) => id !== viewerId);
}

/** Returns the name of a conversation: of the group, or of the other people if it has none. */
export function titleOf(conversation: Conversation, viewerId: string, t: Translate): string {
  if (conversation.name) return conversation.name;
  const names = otherPeople(conversation, viewerId).map(({ name }) => name);
  if (names.length === 0) return t("conversation.alone");
  const shown = names.slice(0, NAMES_MAX).join(t("listSeparator"));
  const hidden = names.length - NAMES_MAX;
  return hidden > 0 ? `${shown} ${t("andMore", { count: hidden })}` : shown;
}

/** Returns the other person of a conversation between two people who has not joined; null if there is none. */
export function absentPerson({ isGroup, people }: Conversation, viewerId: string): Person | null {
  const other = people.find(({ user }) => user.id !== viewerId);
  return isGroup || !other || other.joined ? null : other.user;
}
