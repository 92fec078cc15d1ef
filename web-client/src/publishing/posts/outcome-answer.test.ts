import { expect, test } from "vitest";
import { foundPost } from "./outcome-answer";

test("The post that was found is named by its address or by its id", () => {
  expect(foundPost(" https://x.com/harbour/status/17 ")).toEqual({ url: "https://x.com/harbour/status/17" });
  expect(foundPost("HTTP://x.test/1")).toEqual({ url: "HTTP://x.test/1" });
  expect(foundPost("17")).toEqual({ externalId: "17" });
  expect(foundPost("  ")).toEqual({});
});
