import { expect, test } from "vitest";
import { deviceId, registrationOf } from "./browser-push";

test("the id of a device is the SHA-256 of its address", async () => {
  // printf a | sha256sum
  expect(await deviceId("a")).toBe("ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb");
});

test("a subscription is registered with its address and keys", () => {
  const keys = { p256dh: "key", auth: "secret" };
  const subscription = { toJSON: () => ({ endpoint: "https://push.example.org/a", keys }) };
  expect(registrationOf(subscription as unknown as PushSubscription)).toEqual({
    endpoint: "https://push.example.org/a",
    publicKey: "key",
    authSecret: "secret",
  });
});
