import { expect, test } from "vitest";
import { identityOf, isSession, requestHeaders, sessionCredential, userTextOf } from "./identity";

function tokenWith(claims: unknown): string {
  const bytes = new TextEncoder().encode(JSON.stringify(claims));
  const payload = btoa(String.fromCharCode(...bytes))
    .replaceAll("+", "-")
    .replaceAll("/", "_")
    .replaceAll("=", "");
  return `header.${payload}.signature`;
}

test("tokens of the same user in the same organization have the same identity", () => {
  const first = tokenWith({ sub: "ann", org: "acme", roles: [] });
  const renewed = tokenWith({ sub: "ann", org: "acme", roles: ["ADMIN"], exp: 1 });
  expect(identityOf(first)).toBe(identityOf(renewed));
  expect(identityOf(tokenWith({ sub: "ann", org: "umbrella" }))).not.toBe(identityOf(first));
  expect(identityOf(tokenWith({ sub: "b", org: "a/c" }))).not.toBe(
    identityOf(tokenWith({ sub: "c/b", org: "a" })),
  );
});

test("a text that is no token has no identity", () => {
  for (const text of ["", "abc", "a.b.c", "h.bnVsbA.s", tokenWith({ sub: "ann" })])
    expect(identityOf(text)).toBeNull();
});

test("a user is shown by name, in any script", () => {
  expect(userTextOf(tokenWith({ sub: "ann", org: "acme", name: "佐藤" }))).toBe("佐藤 · acme");
  expect(userTextOf(tokenWith({ sub: "ann", org: "acme" }))).toBe("ann · acme");
});

test("a session and a token of one user have one identity, and requests of a session carry no secret", () => {
  const session = sessionCredential("acme", "a/ö");
  expect(isSession(session)).toBe(true);
  expect(identityOf(session)).toBe(identityOf(tokenWith({ sub: "a/ö", org: "acme" })));
  expect(userTextOf(session)).toBe("a/ö · acme");
  expect(requestHeaders(session)).toEqual({ "noroshi-client": "web" });
  expect(requestHeaders("a.b.c")).toEqual({ authorization: "Bearer a.b.c" });
});
