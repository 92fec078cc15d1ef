/** Users of the web client: a Chromium, its pages, their requests and errors, and axe. */
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { chromium } from "playwright-core";

const PATIENCE_MS = 45_000;
const FLAGS = ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"];
const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

/** Returns the input of the script, read from standard input. */
export function readOrder() {
  return JSON.parse(readFileSync(0, "utf8"));
}

/** Returns an operation's data. Raises: Error. */
export async function ask(url, token, query, variables = {}) {
  const response = await fetch(`${url}/graphql`, {
    method: "POST",
    headers: { "content-type": "application/json", authorization: `Bearer ${token}` },
    body: JSON.stringify({ query, variables }),
  });
  const { data, errors } = await response.json();
  if (errors) throw new Error(JSON.stringify(errors));
  return data;
}

/** Starts a browser; `requests` and `complaints` collect the requests and errors of its pages. */
export async function launch(executablePath, more = {}) {
  const browser = await chromium.launch({ executablePath, headless: true, args: FLAGS, ...more });
  return { browser, requests: [], complaints: [] };
}

/** Opens a separate window, signed in, at a place. */
export async function open(visitors, origin, token, place, more = {}) {
  const options = { viewport: { width: 1400, height: 900 }, locale: "en-US", ...more };
  const context = await visitors.browser.newContext(options);
  context.on("request", (request) => visitors.requests.push(request.url()));
  return await openTab(visitors, context, origin, token, place);
}

/** Opens another tab in the same window. */
export async function openTab({ requests, complaints }, context, origin, token, place) {
  const page = await context.newPage();
  page.on("websocket", (socket) => requests.push(socket.url()));
  page.on("pageerror", (error) => complaints.push(String(error)));
  // Connection failures are also logged to the console; only violations of the content policy and React's warnings
  // count.
  page.on(
    "console",
    (line) => /Content Security Policy|React/.test(line.text()) && complaints.push(line.text()),
  );
  page.setDefaultTimeout(PATIENCE_MS);
  await page.goto(`${origin}/#token=${token}`);
  await page.getByRole("navigation", { name: /Screens|画面/ }).waitFor();
  await go(page, place);
  if (place.startsWith("/topic")) await page.locator("[data-message]").first().waitFor();
  return page;
}

export async function go(page, place) {
  await page.evaluate((to) => {
    location.hash = to;
  }, place);
}

/** Returns the pixels by which the page is wider than its window. */
export async function over_px(page) {
  return await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
}

/** Returns the violations that axe finds on a page in a theme, by all of its rules. */
export async function axe(page, name, theme) {
  await page.emulateMedia({ colorScheme: theme, reducedMotion: "reduce" });
  // Colours in transition between themes have no contrast of their own.
  await page.evaluate(() =>
    Promise.all(document.getAnimations().map((each) => each.finished.catch(() => {}))),
  );
  await page.evaluate(AXE);
  const found = await page.evaluate(() => globalThis.axe.run(document, { resultTypes: ["violations"] }));
  return found.violations.map(
    ({ id, nodes }) => `${name} ${theme} ${id}: ${nodes[0].html} ${nodes[0].failureSummary}`,
  );
}
