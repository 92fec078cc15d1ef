import { expect, test } from "vitest";
import { mayActOn, mayModerate, maySetRoles } from "./rights";

const OWNER = { role: "OWNER", isAdmin: false } as const;
const MODERATOR = { role: "MODERATOR", isAdmin: false } as const;
const MEMBER = { role: "MEMBER", isAdmin: false } as const;
const ADMIN = { role: null, isAdmin: true } as const;

test("a person acts on people of a lower rank only", () => {
  expect(mayActOn(OWNER, "MODERATOR")).toBe(true);
  expect(mayActOn(OWNER, "OWNER")).toBe(false);
  expect(mayActOn(MODERATOR, "MEMBER")).toBe(true);
  expect(mayActOn(MODERATOR, null)).toBe(true);
  expect(mayActOn(MODERATOR, "MODERATOR")).toBe(false);
  expect(mayActOn(MEMBER, "MEMBER")).toBe(false);
  expect(mayActOn(MEMBER, null)).toBe(false);
});

test("an administrator of the organization counts as a moderator", () => {
  expect(mayModerate(ADMIN)).toBe(true);
  expect(mayActOn(ADMIN, "MEMBER")).toBe(true);
  expect(mayActOn(ADMIN, "MODERATOR")).toBe(false);
  expect(maySetRoles(ADMIN)).toBe(false);
  expect(maySetRoles({ role: "OWNER", isAdmin: true })).toBe(true);
});

test("members moderate nobody", () => {
  expect(mayModerate(MEMBER)).toBe(false);
  expect(mayModerate({ role: null, isAdmin: false })).toBe(false);
});
