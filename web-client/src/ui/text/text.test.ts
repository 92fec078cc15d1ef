import { expect, test } from "vitest";
import { type Inline, parseFormatting } from "./formatting";
import examples from "./mention-examples.json";
import { mentionAt, parseText, type TextPart } from "./text";

const kinds = (text: string) => parseText(text).map((part) => `${part.kind}:${part.text}`);

/** Returns the parts of the texts in which the client looks for links, mentions and hashtags. */
function partsOf(text: string): TextPart[] {
  const partsIn = (node: Inline): TextPart[] => {
    if (node.kind === "text") return parseText(node.text);
    return node.kind === "code" || node.kind === "link" ? [] : node.children.flatMap(partsIn);
  };
  return parseFormatting(text).flatMap((block) => {
    if (block.kind === "codeBlock") return [];
    const nodes = block.kind === "list" ? block.items.flatMap((item) => item.children) : block.children;
    return nodes.flatMap(partsIn);
  });
}

test.each(examples)("mentions and hashtags are those of the server: $name", ({ text, ...expected }) => {
  const parts = partsOf(text);
  const handles = parts.flatMap((part) => (part.kind === "mention" ? [part.handle] : []));
  const tags = parts.flatMap((part) => (part.kind === "tag" ? [part.tag] : []));
  expect([...new Set(handles)]).toEqual(expected.mentions);
  expect([...new Set(tags)]).toEqual(expected.hashtags);
});

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
  expect(mentionAt("さん＠ａｎ", 5)).toEqual({ query: "an", start: 2 });
  expect(mentionAt("mail@an", 7)).toBeNull();
  expect(mentionAt("hi @ann there", 13)).toBeNull();
});
