/**
 * Parses texts as the web client does. Standard input: a list of texts. Prints {trees, plainTexts} as one line of JSON.
 */
import { readFileSync } from "node:fs";
import ts from "typescript";

const source = readFileSync(new URL("../src/ui/text/formatting.ts", import.meta.url), "utf8");
const { outputText } = ts.transpileModule(source, {
  compilerOptions: { module: "esnext", target: "es2023" },
});
const { parseFormatting, plainText } = await import(`data:text/javascript,${encodeURIComponent(outputText)}`);
const texts = JSON.parse(readFileSync(0, "utf8"));
console.log(JSON.stringify({ trees: texts.map(parseFormatting), plainTexts: texts.map(plainText) }));
