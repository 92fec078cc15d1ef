/** Texts of the list that shows how texts are formatted. */
export const formatting = {
  "formatting.bold": "bold",
  "formatting.code": "code",
  "formatting.codeBlock": "lines of code",
  "formatting.escaped": "as typed",
  "formatting.italic": "italic",
  "formatting.item": "item",
  "formatting.keys":
    "Ctrl B (⌘ B): bold. Ctrl I (⌘ I): italic. In a code block, Enter adds a line, and Ctrl Enter sends.",
  "formatting.link": "link",
  "formatting.quote": "quote",
  "formatting.shown": "Shown",
  "formatting.struck": "struck",
  "formatting.title": "Formatting",
  "formatting.typed": "Typed",
};
