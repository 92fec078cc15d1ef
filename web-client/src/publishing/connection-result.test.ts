import { expect, test } from "vitest";
import { connectionResultOf } from "./connection-result";

test("the query holds the account or the code of the failure", () => {
  expect(connectionResultOf("?connectedAccount=a1")).toEqual({ accountId: "a1" });
  expect(connectionResultOf("?accountConnectionFailure=EXPIRED")).toEqual({ failure: "EXPIRED" });
});

test("another query holds no result", () => {
  expect(connectionResultOf("")).toBeNull();
  expect(connectionResultOf("?signInFailure=EXPIRED")).toBeNull();
});
