import { expect, test } from "vitest";
import type { Translate } from "../../ui/preferences";
import { placeText, threadName } from "./thread-names";

const t = ((key: string, { text = "" } = {}) => `${key} ${text}`.trim()) as Translate;
const message = (text: string) => ({ text, stamp: null, attachments: [], author: { name: "Ann" } });

test("the name of a thread has the start of a long message, and cuts no character", () => {
  expect(threadName(message("Who **rows**?"), t)).toBe("thread.name Who rows?");
  expect(threadName(message("\u{1F6A3}".repeat(61)), t)).toBe(`thread.name ${"\u{1F6A3}".repeat(60)}…`);
});

test("a place has the names of its community and its topic, each once", () => {
  const place = (title: string) => placeText({ title, community: { name: "Rowers" } }, t);
  expect([place("Boats"), place("Rowers"), place("")]).toEqual(["Rowers · Boats", "Rowers", "conversations"]);
});
