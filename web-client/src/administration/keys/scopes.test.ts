import { expect, test } from "vitest";
import schema from "../../../../schema/schema.graphql?raw";
import { actionOf, SCOPES, scopesByArea } from "./scopes";

test("the scopes are those that the description in the schema names", () => {
  const description = /Possible are ([^.]*)\./.exec(schema)?.[1] ?? "";
  const named = [...description.matchAll(/`([a-z]+:[a-z]+)`/g)].map(([, scope]) => scope);
  expect([...SCOPES].sort()).toEqual(named.sort());
});

test("scopes are shown by area", () => {
  expect(scopesByArea(["chat:read", "chat:write", "jobs:read"])).toEqual([
    ["chat", ["chat:read", "chat:write"]],
    ["jobs", ["jobs:read"]],
  ]);
  expect(actionOf("mail:ingest")).toBe("ingest");
});
