/**
 * What the stories in a browser share: one Chromium, signed-in pages, the API beside them, and a look at a state with
 * axe in both themes and at the width of a small telephone.
 */
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { chromium } from "playwright-core";

const PATIENCE_MS = 20_000;
const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const FLAGS = ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"];
const WIDE = { width: 1400, height: 900 };
const TELEPHONE = { width: 360, height: 740 };

/** Standard input, as one order of JSON. */
export const order = () => JSON.parse(readFileSync(0, "utf8"));

/** `seen` is what the looks and pages came across; `close` ends the browser. */
export async function beginVisit({ url, chromium: executablePath, screenshots }) {
  const browser = await chromium.launch({ executablePath, headless: true, args: FLAGS });
  const seen = { requests: [], complaints: [], violations: [], tooWide: [] };

  async function ask(token, query, variables = {}) {
    const response = await fetch(`${url}/graphql`, {
      method: "POST",
      headers: { "content-type": "application/json", authorization: `Bearer ${token}` },
      body: JSON.stringify({ query, variables }),
    });
    const { data, errors } = await response.json();
    if (errors) throw new Error(JSON.stringify(errors));
    return data;
  }

  /** A page of somebody who is signed in, at a place. */
  async function open(token, place, more = {}) {
    const context = await browser.newContext({ viewport: WIDE, locale: "en-US", ...more });
    context.on("request", (request) => seen.requests.push(request.url()));
    const page = await context.newPage();
    page.on("websocket", (socket) => seen.requests.push(socket.url()));
    page.on("pageerror", (error) => seen.complaints.push(String(error)));
    page.on("console", (line) => line.type() === "error" && seen.complaints.push(line.text()));
    page.setDefaultTimeout(PATIENCE_MS);
    await page.goto(`${url}/#token=${token}`);
    await page.getByRole("navigation", { name: /^(Screens|画面)$/ }).waitFor();
    await visit(page, place);
    return page;
  }

  /** A state of a page with axe: whole by day; after dark only colours, as nothing else differs. */
  async function look(page, name) {
    for (const theme of ["light", "dark"]) {
      await page.emulateMedia({ colorScheme: theme, reducedMotion: "reduce" });
      await settled(page);
      await page.screenshot({ path: `${screenshots}/${name}-${theme}.png` });
      await page.evaluate(AXE);
      const rules = theme === "dark" ? { runOnly: ["color-contrast"] } : {};
      const found = await page.evaluate(
        (more) => globalThis.axe.run(document, { resultTypes: ["violations"], ...more }),
        rules,
      );
      for (const { id, nodes } of found.violations)
        seen.violations.push(`${name} ${theme} ${id}: ${nodes[0].html} ${nodes[0].failureSummary}`);
    }
    await page.setViewportSize(TELEPHONE);
    await settled(page);
    await page.screenshot({ path: `${screenshots}/${name}-360.png` });
    const over_px = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
    if (over_px > 0) seen.tooWide.push(`${name}: ${over_px} px`);
    await page.setViewportSize(WIDE);
    await page.emulateMedia({ colorScheme: "light", reducedMotion: "reduce" });
  }

  return { browser, seen, ask, open, look, close: () => browser.close() };
}

export async function visit(page, place) {
  await page.evaluate((to) => {
    location.hash = to;
  }, place);
}

/** A colour on its way from one theme to the other has no contrast of its own. */
export async function settled(page) {
  await page.evaluate(async () => {
    const frame = () => new Promise(requestAnimationFrame);
    await frame();
    await frame();
    const ending = document.getAnimations().filter(({ effect }) => effect.getTiming().iterations === 1);
    await Promise.all(ending.map((each) => each.finished.catch(() => {})));
  });
}
