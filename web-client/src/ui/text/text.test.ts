import { expect, test } from "vitest";
import { mentionAt, parseText } from "./text";

const kinds = (text: string) => parseText(text).map((part) => `${part.kind}:${part.text}`);

test("links end before the punctuation of the sentence", () => {
  expect(kinds("see https://example.org/a?b=1, then")).toEqual([
    "text:see ",
    "link:https://example.org/a?b=1",
    "text:, then",
  ]);
  expect(kinds("（https://example.org）")[1]).toBe("link:https://example.org");
});

test("mentions and hashtags are found in both languages, mail addresses are not", () => {
  expect(kinds("@ann, #山 へ")).toEqual(["mention:@ann", "text:, ", "tag:#山", "text: へ"]);
  expect(kinds("ann@example.org")).toEqual(["text:ann@example.org"]);
  expect(parseText("#Dawn")[0]).toMatchObject({ tag: "dawn" });
});

test("the parts together are the whole text", () => {
  const text = "a @b. #c https://d.e/f). <script>";
  expect(
    parseText(text)
      .map((part) => part.text)
      .join(""),
  ).toBe(text);
});

test("a handle is found only directly before the caret, and not in a mail address", () => {
  expect(mentionAt("hi @an", 6)).toEqual({ query: "an", start: 3 });
  expect(mentionAt("hi @", 4)).toEqual({ query: "", start: 3 });
  expect(mentionAt("mail@an", 7)).toBeNull();
  expect(mentionAt("hi @ann there", 13)).toBeNull();
});
