import { expect, test } from "vitest";
import schema from "../../../../schema/schema.graphql?raw";
import { type TextKey, translate } from "../../i18n/texts";
import { EVENT_AREAS, eventTypeName, readableTypes, withoutUnreadable } from "./event-types";

const t = (key: TextKey) => translate("en", key);

test("the types are those that the description in the schema names", () => {
  const [, names = ""] = /Types of events that are sent, at least one: ([^.]*)\./.exec(schema) ?? [];
  expect(EVENT_AREAS.flatMap(({ types }) => types as readonly string[]).sort()).toEqual(names.split(", "));
});

test("a key reads the types of its scopes", () => {
  expect(readableTypes(["feed:read", "mail:read"])).toEqual(["PostArrived", "PostRemoved"]);
  expect(readableTypes(["chat:read"])).toHaveLength(11);
});

test("types that the key may not read are left out, types that the client does not know are kept", () => {
  expect(withoutUnreadable(["PostArrived", "MessagePosted", "MoonLanded"], ["feed:read"])).toEqual([
    "PostArrived",
    "MoonLanded",
  ]);
});

test("a type is shown in plain words, an unknown one by its name", () => {
  expect(eventTypeName("MessagePosted", t)).toBe("A message is posted");
  expect(eventTypeName("WebhookTest", t)).toBe("Test");
  expect(eventTypeName("MoonLanded", t)).toBe("MoonLanded");
});
