import { expect, test } from "vitest";
import { auditAddress } from "./address";

test("the URL of a download has the chosen filters only", () => {
  const none = { actorId: null, targetId: null, action: null, since: null, until: null };
  expect(auditAddress(none)).toBe("/audit.ndjson?");
  expect(auditAddress({ ...none, action: "USER_ERASED", actorId: "a&b" })).toBe(
    "/audit.ndjson?actorId=a%26b&action=USER_ERASED",
  );
});
