import { expect, test } from "vitest";
import { readingsOf, rejectionOf } from "./rejections";

const rejectedDueAt = (expected: string) => ({
  graphQLErrors: [{ extensions: { code: "BAD_USER_INPUT", field: "dueAt", expected } }],
});

test("both readings of an ambiguous local time are parsed from the rejection", () => {
  const text =
    "2026-10-25T00:30:00Z or 2026-10-25T01:30:00Z, because 2026-10-25 02:30:00 occurs twice in Europe/Berlin";
  expect(readingsOf(rejectionOf(rejectedDueAt(text)))).toEqual({
    kind: "twice",
    instants: ["2026-10-25T00:30:00Z", "2026-10-25T01:30:00Z"],
  });
  expect(readingsOf(rejectionOf(rejectedDueAt(text.replace("occurs twice", "does not exist"))))?.kind).toBe(
    "never",
  );
});

test("the reason of a network is kept in its own words", () => {
  const refused = { code: "BAD_USER_INPUT", field: "credentials", expected: "others", reason: "Expired" };
  expect(rejectionOf({ graphQLErrors: [{ extensions: refused }] })).toEqual({
    field: "credentials",
    expected: "others",
    reason: "Expired",
  });
  expect(rejectionOf(rejectedDueAt("a time"))).not.toHaveProperty("reason");
});

test("other rejections have no readings, and other errors are no rejections", () => {
  expect(readingsOf(rejectionOf(rejectedDueAt("a time before the year 2106")))).toBeNull();
  expect(rejectionOf({ graphQLErrors: [{ extensions: { code: "CONFLICT" } }] })).toBeNull();
  expect(readingsOf(rejectionOf({ networkError: new Error("offline") }))).toBeNull();
});
