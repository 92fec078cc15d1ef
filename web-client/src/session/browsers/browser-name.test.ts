import { expect, test } from "vitest";
import { browserName } from "./browser-name";

test("browsers and systems are named as people call them", () => {
  const chrome =
    "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/156.0 Safari/537.36";
  expect(browserName(chrome)).toBe("Chrome · Linux");
  expect(browserName(`${chrome} Edg/156.0`)).toBe("Edge · Linux");
  const safari =
    "Mozilla/5.0 (iPhone; CPU iPhone OS 20_0 like Mac OS X) AppleWebKit/605.1 (KHTML, like Gecko) Safari/604.1";
  expect(browserName(safari)).toBe("Safari · iOS");
  expect(browserName("Mozilla/5.0 (Windows NT 10.0; rv:140.0) Gecko/20100101 Firefox/140.0")).toBe(
    "Firefox · Windows",
  );
});

test("an unknown browser has no name", () => {
  expect(browserName(null)).toBeNull();
  expect(browserName("curl/8")).toBeNull();
});
