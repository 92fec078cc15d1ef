import { expect, test } from "vitest";
import { translate } from "../../i18n/texts";
import type { Translate } from "../../ui/preferences";
import type { Conversation } from "./operations";
import { absentPerson, titleOf } from "./people";

const t: Translate = (key, values) => translate("en", key, values);

function conversation(names: string[], parts: Partial<Conversation> = {}): Conversation {
  const people = names.map((name) => ({ joined: name !== "Absent", user: { id: name, name, handle: name } }));
  const topic = {
    id: "c",
    title: "",
    archivedAt: null,
    lastActivity: "1.000000",
    unreadCount: 0,
    muted: false,
    lastMessage: null,
  };
  return { id: "c", name: "", isGroup: people.length > 2, state: "JOINED", people, topic, ...parts };
}

test("a conversation without a name is called after the other people", () => {
  expect(titleOf(conversation(["Ann", "Bob"]), "Ann", t)).toBe("Bob");
  expect(titleOf(conversation(["Ann", "Bob", "Cyd"]), "Ann", t)).toBe("Bob, Cyd");
  expect(titleOf(conversation(["Ann", "Bob", "Cyd", "Dan", "Eve", "Fay"]), "Ann", t)).toBe(
    "Bob, Cyd, Dan and 2 more",
  );
  expect(titleOf(conversation(["Ann"], { isGroup: true }), "Ann", t)).toBe("Only you");
  expect(titleOf(conversation(["Ann", "Bob"], { name: "Boats" }), "Ann", t)).toBe("Boats");
});

test("only the other person of two can be absent", () => {
  expect(absentPerson(conversation(["Ann", "Absent"]), "Ann")?.name).toBe("Absent");
  expect(absentPerson(conversation(["Ann", "Bob"]), "Ann")).toBeNull();
  expect(absentPerson(conversation(["Ann", "Bob", "Absent"]), "Ann")).toBeNull();
});
