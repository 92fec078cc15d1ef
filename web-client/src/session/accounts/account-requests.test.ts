import { expect, test } from "vitest";
import { AccountFailure, accountFailureTextKey } from "./account-requests";

test("a rejected field has its own text, an unknown field has the general text", () => {
  expect(accountFailureTextKey(new AccountFailure("BAD_USER_INPUT", "password"))).toBe("local.weakPassword");
  expect(accountFailureTextKey(new AccountFailure("BAD_USER_INPUT", "handle"))).toBe("local.badHandle");
  expect(accountFailureTextKey(new AccountFailure("BAD_USER_INPUT", "device"))).toBe("failure.input");
});

test("other failures have a text for their code", () => {
  expect(accountFailureTextKey(new AccountFailure("UNAUTHENTICATED"))).toBe("local.wrongPassword");
  expect(accountFailureTextKey(new AccountFailure("SOMETHING_NEW"))).toBe("failure.unknown");
  expect(accountFailureTextKey(new TypeError("x"))).toBe("failure.unknown");
});
