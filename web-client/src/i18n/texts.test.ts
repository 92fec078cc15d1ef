import { expect, test } from "vitest";
import { mailDecisions as mailDecisionsEn } from "./en/mail-decisions";
import { webhooks as webhooksEn } from "./en/webhooks";
import { mailDecisions as mailDecisionsJa } from "./ja/mail-decisions";
import { webhooks as webhooksJa } from "./ja/webhooks";
import { loadTexts, type Text, type TextKey, translate } from "./texts";
import { relativeTime } from "./times";

const forms = (text: Text) => (typeof text === "string" ? [text] : Object.values(text));
const placeholders = (text: Text) =>
  forms(text).flatMap((form) => [...form.matchAll(/\{(\w+)\}/g)].map(([, name]) => name));

test("both languages have all texts, and the Japanese text has only placeholders of the English text", async () => {
  const en = { ...(await loadTexts("en")), ...mailDecisionsEn, ...webhooksEn };
  const ja = { ...(await loadTexts("ja")), ...mailDecisionsJa, ...webhooksJa };
  for (const key of Object.keys(en) as TextKey[]) {
    for (const form of [...forms(en[key]), ...forms(ja[key])]) expect(form, key).not.toBe("");
    expect(
      placeholders(ja[key]).filter((name) => !placeholders(en[key]).includes(name)),
      key,
    ).toEqual([]);
  }
});

test("texts of a screen that is loaded on first use are found beside the others", () => {
  expect(translate("en", "webhooks.topicCount", { count: 1 })).toBe("1 topic");
  expect(translate("ja", "webhooks.topicCount", { count: 1 })).toBe("トピック 1 件");
});

test("a count selects the plural form in languages with plural forms", () => {
  expect(translate("en", "members", { count: 1 })).toBe("1 member");
  expect(translate("en", "members", { count: 0 })).toBe("0 members");
  expect(translate("ja", "members", { count: 1 })).toBe("メンバー 1 人");
});

test("numbers are formatted for the language, texts are inserted unchanged", () => {
  expect(translate("en", "members", { count: 12000 })).toBe("12,000 members");
  expect(translate("en", "post.delete")).toBe("Delete post");
  expect(translate("en", "reaction.by", { name: "$& {name}" })).toBe("by $& {name}");
});

test("a recent time is shown by its age", () => {
  const now = new Date("2026-11-21T12:00:00Z");
  expect(relativeTime("en", new Date("2026-11-21T11:55:00Z"), now)).toBe("5 min. ago");
  expect(relativeTime("en", new Date("2026-10-01T11:55:00Z"), now)).toBe("Oct 1");
});
