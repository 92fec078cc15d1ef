import { expect, test } from "vitest";
import { en } from "./en";
import { ja } from "./ja";
import { ago } from "./times";
import { say, type Word } from "./words";

const values = (text: string) => [...text.matchAll(/\{(\w+)\}/g)].map(([, name]) => name).sort();

test("both languages have the same words with the same values", () => {
  for (const word of Object.keys(en) as Word[]) {
    expect(ja[word], word).not.toBe("");
    expect(
      values(ja[word]).filter((name) => !values(en[word]).includes(name)),
      word,
    ).toEqual([]);
  }
});

test("values are put in as they are", () => {
  expect(say("en", "members", { count: 3 })).toBe("3 members");
  expect(say("ja", "members", { count: 3 })).toBe("メンバー 3 人");
});

test("what is close is told by its age", () => {
  const now = new Date("2026-11-21T12:00:00Z");
  expect(ago("en", new Date("2026-11-21T11:55:00Z"), now)).toBe("5 min. ago");
  expect(ago("en", new Date("2026-10-01T11:55:00Z"), now)).toBe("Oct 1");
});
