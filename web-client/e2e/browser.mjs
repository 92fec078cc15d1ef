/** Opens pages of the web client in Chromium, records their requests and errors, and checks them with axe. */
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { chromium } from "playwright-core";

const TIMEOUT_MS = 45_000;
export const CHROMIUM_FLAGS = [
  "--no-sandbox",
  "--disable-gpu",
  "--no-first-run",
  "--disable-background-networking",
];

/** Rules of axe whose result depends on the theme and the width. The other rules depend on the elements alone. */
export const VISUAL_RULES = ["color-contrast", "target-size", "scrollable-region-focusable"];
/** The texts that the built web client may send. */
const TRUSTED = new Set(
  Object.values(JSON.parse(readFileSync(new URL("../dist/trusted-documents.json", import.meta.url), "utf8"))),
);
const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

/** The browser that several scripts share, and the input of the running one; undefined if a script runs alone. */
let shared;

/** Lets the next script use a running browser and this input. */
export function shareBrowser(browser, input) {
  shared = { browser, input };
}

/** Returns the script's arguments, which are JSON on standard input if the script runs alone. */
export function readInput() {
  return shared ? shared.input : JSON.parse(readFileSync(0, "utf8"));
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

/**
 * Returns the shared browser. Starts a browser if there is no shared one, or if this script needs its own options.
 * Closing the shared browser closes only the windows of this script. `requests` and `pageErrors` collect the requested
 * URLs and the errors of the script's pages.
 */
export async function launch(executablePath, options = null) {
  const browser =
    shared && options === null
      ? windowsOf(shared.browser)
      : await chromium.launch({ executablePath, headless: true, args: CHROMIUM_FLAGS, ...options });
  return { browser, requests: [], pageErrors: [] };
}

/** Returns what scripts use of a browser that does not end with them. */
function windowsOf(browser) {
  return {
    newContext: (options) => browser.newContext(options),
    close: () => Promise.all(browser.contexts().map((context) => context.close())),
  };
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
  watchDocuments(page, pageErrors);
  // The tests cause connection failures, which the console reports as well. Only violations of the content policy and
  // React's warnings count as errors.
  page.on(
    "console",
    (line) => /Content Security Policy|React/.test(line.text()) && pageErrors.push(line.text()),
  );
  page.setDefaultTimeout(TIMEOUT_MS);
  await page.goto(`${origin}/#token=${token}`);
  await waitForSignIn(page);
  await navigate(page, path);
  if (path.startsWith("/topic")) await page.locator("[data-message]").first().waitFor();
  return page;
}

/** Opens a window of 1280 x 800 with separate storage. Returns its page, on which nobody is signed in. */
export async function openWindow(session, locale = "en-US") {
  const context = await session.browser.newContext({ locale, viewport: { width: 1280, height: 800 } });
  context.on("request", (request) => session.requests.push(request.url()));
  const page = await context.newPage();
  page.on("pageerror", (error) => session.pageErrors.push(String(error)));
  watchDocuments(page, session.pageErrors);
  page.setDefaultTimeout(TIMEOUT_MS);
  return page;
}

/** Records each text that the web client on a page sends and that its manifest lacks as an error. */
function watchDocuments(page, pageErrors) {
  const check = (text) => {
    // GraphiQL sends what is typed.
    const isWebClient = new URL(page.url()).pathname === "/";
    if (isWebClient && !TRUSTED.has(text)) pageErrors.push(`not in the manifest: ${text}`);
  };
  page.on("request", (request) => {
    const isOperation = request.method() === "POST" && new URL(request.url()).pathname === "/graphql";
    // Operations of the scripts have this header.
    if (isOperation && request.headers()["noroshi-client"] !== "test") check(request.postDataJSON().query);
  });
  page.on("websocket", (socket) =>
    socket.on("framesent", ({ payload }) => {
      const { type, payload: operation } = JSON.parse(payload);
      if (type === "subscribe") check(operation.query);
    }),
  );
}

/** Waits until somebody is signed in on a page. */
export async function waitForSignIn(page) {
  await page.getByRole("navigation", { name: /Screens|画面/ }).waitFor();
}

/** Runs a GraphQL operation with the cookie of the page's session, and returns its data. Throws: Error. */
export async function runInSession(page, query) {
  const { data, errors } = await page.evaluate(async (body) => {
    const headers = { "content-type": "application/json", "noroshi-client": "test" };
    return await (await fetch("/graphql", { method: "POST", headers, body })).json();
  }, JSON.stringify({ query }));
  if (errors) throw new Error(JSON.stringify(errors));
  return data;
}

/** Waits until somebody is signed in on a page. Returns the way in which the person signed in. */
export async function signInMethod(page) {
  await waitForSignIn(page);
  const { mySessions } = await runInSession(page, "{ mySessions { method current } }");
  return mySessions.find(({ current }) => current).method;
}

/** Adds a virtual authenticator to the page's browser. Its user is present and verified. */
export async function addAuthenticator(page) {
  const client = await page.context().newCDPSession(page);
  await client.send("WebAuthn.enable");
  const options = {
    protocol: "ctap2",
    transport: "internal",
    hasResidentKey: true,
    hasUserVerification: true,
    isUserVerified: true,
    automaticPresenceSimulation: true,
  };
  const { authenticatorId } = await client.send("WebAuthn.addVirtualAuthenticator", { options });
  return {
    setVerified: (isUserVerified) =>
      client.send("WebAuthn.setUserVerified", { authenticatorId, isUserVerified }),
    clear: () => client.send("WebAuthn.clearCredentials", { authenticatorId }),
    credentials: async () => (await client.send("WebAuthn.getCredentials", { authenticatorId })).credentials,
  };
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

/** Loads axe into a page, unless it is there already. */
export async function loadAxe(page) {
  if (!(await page.evaluate(() => "axe" in globalThis))) await page.evaluate(AXE);
}

/**
 * Returns the violations that axe finds on a page in both themes. All rules of axe apply; those that do not depend on
 * the theme run once.
 */
export async function axeViolations(page, name) {
  return [
    ...(await violationsInTheme(page, name, "dark")),
    ...(await violationsInTheme(page, name, "light", VISUAL_RULES)),
  ];
}

async function violationsInTheme(page, name, theme, runOnly = null) {
  await page.emulateMedia({ colorScheme: theme, reducedMotion: "reduce" });
  // Contrast is checked only after the transition between themes has ended.
  await page.evaluate(() =>
    Promise.all(document.getAnimations().map((animation) => animation.finished.catch(() => {}))),
  );
  await loadAxe(page);
  const axeOptions = { resultTypes: ["violations"], ...(runOnly && { runOnly }) };
  const results = await page.evaluate((options) => globalThis.axe.run(document, options), axeOptions);
  return results.violations.map(
    ({ id, nodes }) => `${name} ${theme} ${id}: ${nodes[0].html} ${nodes[0].failureSummary}`,
  );
}
