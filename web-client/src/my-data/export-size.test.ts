import { expect, test } from "vitest";
import { sizeText } from "./export-size";

test("the size of an archive is shown in kilobytes and megabytes", () => {
  expect(sizeText("en", 20)).toBe("1 kB");
  expect(sizeText("en", 2_600)).toBe("3 kB");
  expect(sizeText("en", 12_340_000)).toBe("12.3 MB");
});
