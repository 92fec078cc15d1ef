import { expect, test } from "vitest";
import { type Block, bulletOf, type Inline, isInFence, parseFormatting, plainText } from "./formatting";
import examples from "./formatting-examples.json";

type Compact = string | Compact[];

/** Returns a block or a node in the form of formatting-examples.json. */
function compact(node: Block | Inline): Compact {
  if (node.kind === "text") return node.text;
  if (node.kind === "code" || node.kind === "codeBlock") return [node.kind, node.text];
  if (node.kind === "list")
    return [node.kind, ...node.items.map((item) => [bulletOf(item), ...item.children.map(compact)])];
  const target = node.kind === "link" ? [node.href] : [];
  return [node.kind, ...target, ...node.children.map(compact)];
}

test.each(examples)("the examples are read as the server reads them: $name", (example) => {
  expect(parseFormatting(example.text).map(compact)).toEqual(example.blocks);
  expect(plainText(example.text)).toBe(example.plainText);
});

test("a code block is open until the line that closes it", () => {
  expect(isInFence("```js\nlet a")).toBe(true);
  expect(isInFence("```\na\n```")).toBe(false);
  expect(isInFence("`a`")).toBe(false);
});
