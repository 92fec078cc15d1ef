/**
 * Runs scripts in one browser. Each line of standard input is a JSON object with the path of a script and its input.
 * Prints for each a line of JSON: the report that the script has printed, or its error. A process of its own for each
 * script would load Playwright each time, and pass all messages on to the process with the browser.
 *
 * Argument: the path of Chromium. Ends with its standard input.
 */
import { createInterface } from "node:readline";
import { chromium } from "playwright-core";
import { CHROMIUM_FLAGS, shareBrowser } from "./browser.mjs";

const print = console.log;
const browser = await chromium.launch({
  executablePath: process.argv[2],
  headless: true,
  args: CHROMIUM_FLAGS,
});
print("ready");
let count = 0;
for await (const line of createInterface({ input: process.stdin }))
  print(JSON.stringify(await run(JSON.parse(line))));
await browser.close();

async function run({ script, ...input }) {
  const printed = [];
  console.log = (text) => printed.push(text);
  shareBrowser(browser, input);
  try {
    // The number makes Node run a script again that it has run before.
    await import(`./${script}?${++count}`);
    return { report: JSON.parse(printed.at(-1)) };
  } catch (error) {
    return { error: String(error?.stack ?? error) };
  } finally {
    for (const context of browser.contexts()) await context.close();
  }
}
