/**
 * Starts a browser that several scripts share, and prints its address. The browser ends with this script, when its
 * standard input ends.
 *
 * Argument: the path of Chromium.
 */
import { chromium } from "playwright-core";
import { CHROMIUM_FLAGS } from "./browser.mjs";

const server = await chromium.launchServer({
  executablePath: process.argv[2],
  headless: true,
  args: CHROMIUM_FLAGS,
});
console.log(server.wsEndpoint());
process.stdin.resume().on("end", async () => {
  await server.close();
  process.exit();
});
