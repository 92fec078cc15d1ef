import { expect, test } from "vitest";
import { GROUPS, loadEmojis } from "./emoji-data";
import { findEmojis } from "./emoji-search";

const symbols = async (language: "en" | "ja", query: string) =>
  findEmojis(await loadEmojis(language), query).map(({ unicode }) => unicode);

test("emojis are found by words of their names in both languages", async () => {
  expect((await symbols("en", "red Heart"))[0]).toBe("❤️");
  expect(await symbols("ja", "ラーメン")).toContain("🍜");
  expect(await symbols("en", "  ")).toEqual([]);
  expect(await symbols("en", "no such emoji")).toEqual([]);
});

test("own names come before other words, and few results are shown", async () => {
  const found = await symbols("en", "face");
  expect(found).toHaveLength(64);
  expect(found[0]).toBe("😀");
});

test("every group has emojis", async () => {
  const emojis = await loadEmojis("en");
  for (const { group, symbol } of GROUPS)
    expect(emojis.find(({ unicode }) => unicode === symbol)?.group, symbol).toBe(group);
});
