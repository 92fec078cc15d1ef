/**
 * Parses texts as the web client does. Standard input: a list of texts. Prints {trees, plainTexts, parts} as one line of
 * JSON. `parts` are the links, mentions and hashtags of each text between markers, code and links.
 */
import { readFileSync } from "node:fs";
import ts from "typescript";

function addressOf(name, imports = {}) {
  let source = readFileSync(new URL(`../src/ui/text/${name}.ts`, import.meta.url), "utf8");
  for (const [specifier, address] of Object.entries(imports)) source = source.replace(specifier, address);
  const { outputText } = ts.transpileModule(source, {
    compilerOptions: { module: "esnext", target: "es2023" },
  });
  return `data:text/javascript,${encodeURIComponent(outputText)}`;
}

const formatting = addressOf("formatting");
const { parseFormatting, plainText } = await import(formatting);
const { parseText } = await import(addressOf("text", { "./formatting": formatting }));

function partsOf(node) {
  if (node.kind === "text") return parseText(node.text);
  if (node.kind === "code" || node.kind === "codeBlock" || node.kind === "link") return [];
  return [...(node.items ?? []), ...(node.children ?? [])].flatMap(partsOf);
}

const texts = JSON.parse(readFileSync(0, "utf8"));
const trees = texts.map(parseFormatting);
console.log(
  JSON.stringify({
    trees,
    plainTexts: texts.map(plainText),
    parts: trees.map((tree) => tree.flatMap(partsOf)),
  }),
);
