import { expect, test } from "vitest";
import schema from "../../../../schema/schema.graphql?raw";
import { type TextKey, translate } from "../../i18n/texts";
import { actionName, auditActions, detailName, detailValue, roleNames, sentenceOf } from "./sentence";

const t = (key: TextKey, values?: Record<string, string | number>) => translate("en", key, values);
const ja = (key: TextKey, values?: Record<string, string | number>) => translate("ja", key, values);

test("every kind of change of the schema has a sentence and a name in both languages", () => {
  const [, values = ""] = /^enum AuditAction \{(.*?)^\}/ms.exec(schema) ?? [];
  expect(auditActions().sort()).toEqual(
    [...values.matchAll(/^ {2}([A-Z_]+)$/gm)].map(([, name]) => name).sort(),
  );
  for (const action of auditActions()) {
    for (const language of [t, ja]) {
      expect(sentenceOf({ action, details: [] }, language), action).not.toBe(language("audit.unknown"));
      expect(sentenceOf({ action, details: [] }, language), action).toContain("{actor}");
      expect(actionName(action, language)).not.toBe(action);
    }
  }
});

test("the sentence of a ban says when the ban ends, if it ends", () => {
  const ban = { action: "COMMUNITY_MEMBER_BANNED" as const };
  expect(sentenceOf({ ...ban, details: [{ name: "until", value: "" }] }, t)).not.toContain("{until}");
  const until = { name: "until", value: "2030-01-01T00:00:00Z" };
  expect(sentenceOf({ ...ban, details: [until] }, t)).toContain("{until}");
});

test("an unknown kind of change, detail or role is shown by its name", () => {
  const action = "MOON_LANDED" as ReturnType<typeof auditActions>[number];
  expect(sentenceOf({ action, details: [] }, t)).toContain("{action}");
  expect(actionName(action, t)).toBe("MOON_LANDED");
  expect(detailName("phase", t)).toBe("phase");
  expect(roleNames("MEMBER, PILOT", t)).toBe("Member, PILOT");
  expect(roleNames("MEMBER, ADMIN", ja)).toBe("メンバー、管理者");
});

test("instants and known values of details are shown in the viewer's language", () => {
  expect(detailValue("until", "2030-01-01T12:00:00Z", t, "en")).toContain("2030");
  expect(detailValue("until", "2030-01-01T12:00:00Z", ja, "ja")).toContain("2030年");
  expect(detailValue("visibility", "LISTED", t, "en")).toBe("By request");
  expect(detailValue("name", "2030-01-01", t, "en")).toBe("2030-01-01");
});
