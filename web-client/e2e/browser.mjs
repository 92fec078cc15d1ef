/** Opens pages of the web client in Chromium, records their requests and errors, and checks them with axe. */
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { chromium } from "playwright-core";

const TIMEOUT_MS = 45_000;
const CHROMIUM_FLAGS = ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"];
const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

/** Returns the script's arguments, which are JSON on standard input. */
export function readInput() {
  return JSON.parse(readFileSync(0, "utf8"));
}

/** Runs a GraphQL operation and returns its data. Throws: Error. */
export async function runOperation(url, token, query, variables = {}) {
  const response = await fetch(`${url}/graphql`, {
    method: "POST",
    headers: { "content-type": "application/json", authorization: `Bearer ${token}` },
    body: JSON.stringify({ query, variables }),
  });
  const { data, errors } = await response.json();
  if (errors) throw new Error(JSON.stringify(errors));
  return data;
}

/** Starts a browser. `requests` and `pageErrors` collect the requested URLs and the errors of its pages. */
export async function launch(executablePath, options = {}) {
  const browser = await chromium.launch({ executablePath, headless: true, args: CHROMIUM_FLAGS, ...options });
  return { browser, requests: [], pageErrors: [] };
}

/** Opens a window with separate storage, signs the user in, and goes to a path. Returns the page. */
export async function openPage(session, origin, token, path, contextOptions = {}) {
  const options = { viewport: { width: 1400, height: 900 }, locale: "en-US", ...contextOptions };
  const context = await session.browser.newContext(options);
  context.on("request", (request) => session.requests.push(request.url()));
  return await openTab(session, context, origin, token, path);
}

/** Opens a tab in a window, signs the user in, and goes to a path. Returns the page. */
export async function openTab({ requests, pageErrors }, context, origin, token, path) {
  const page = await context.newPage();
  page.on("websocket", (socket) => requests.push(socket.url()));
  page.on("pageerror", (error) => pageErrors.push(String(error)));
  // The tests cause connection failures, which the console reports as well. Only violations of the content policy and
  // React's warnings count as errors.
  page.on(
    "console",
    (line) => /Content Security Policy|React/.test(line.text()) && pageErrors.push(line.text()),
  );
  page.setDefaultTimeout(TIMEOUT_MS);
  await page.goto(`${origin}/#token=${token}`);
  await page.getByRole("navigation", { name: /Screens|画面/ }).waitFor();
  await navigate(page, path);
  if (path.startsWith("/topic")) await page.locator("[data-message]").first().waitFor();
  return page;
}

/** Goes to a path of the web client, without loading the page again. */
export async function navigate(page, path) {
  await page.evaluate((hash) => {
    location.hash = hash;
  }, path);
}

/** Returns by how many pixels the page is wider than its window. */
export async function overflow_px(page) {
  return await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
}

/** Returns the violations that axe finds on a page in a theme. All rules of axe apply. */
export async function axeViolations(page, name, theme) {
  await page.emulateMedia({ colorScheme: theme, reducedMotion: "reduce" });
  // Contrast is checked only after the transition between themes has ended.
  await page.evaluate(() =>
    Promise.all(document.getAnimations().map((animation) => animation.finished.catch(() => {}))),
  );
  await page.evaluate(AXE);
  const results = await page.evaluate(() => globalThis.axe.run(document, { resultTypes: ["violations"] }));
  return results.violations.map(
    ({ id, nodes }) => `${name} ${theme} ${id}: ${nodes[0].html} ${nodes[0].failureSummary}`,
  );
}
