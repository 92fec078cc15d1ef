import { expect, test } from "vitest";
import { parseAccountLink } from "./account-link";

test.each(["first-admin", "invitation", "verification", "reset"])("the link %s is recognized", (kind) => {
  expect(parseAccountLink(`#${kind}=a_b-c`)).toEqual({ kind, token: "a_b-c" });
});

test.each(["", "#/home", "#token=x", "#invitation=", "#/topic/invitation"])("%s is no link", (fragment) => {
  expect(parseAccountLink(fragment)).toBeNull();
});
