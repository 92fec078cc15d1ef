import { expect, test } from "vitest";
import { toggled } from "./formatting-keys";

/** Returns the text after the key, with the selection between | and |. */
function press(text: string, marker: string): string {
  const start = text.indexOf("|");
  const end = text.lastIndexOf("|") - 1;
  const plain = text.replaceAll("|", "");
  const change = toggled(plain, start, end, marker);
  const result = plain.slice(0, change.start) + change.text + plain.slice(change.end);
  const [from, to] = change.selection;
  return `${result.slice(0, from)}|${result.slice(from, to)}|${result.slice(to)}`;
}

test("a selected text gets a marker, and loses it", () => {
  expect(press("a |b c| d", "**")).toBe("a **|b c|** d");
  expect(press("a **|b c|** d", "**")).toBe("a |b c| d");
  expect(press("**|b|**", "*")).toBe("***|b|***");
  expect(press("***|b|***", "**")).toBe("*|b|*");
});

test("markers stand beside words, in each line", () => {
  expect(press("|b |c", "*")).toBe("*|b|* c");
  expect(press("|a\n\nb |", "**")).toBe("|**a**\n\n**b** |");
});

test("without a selection, the caret stands between the markers", () => {
  expect(press("a ||", "**")).toBe("a **||**");
  expect(press("a **||**", "**")).toBe("a ||");
});
