/**
 * Uses GraphiQL in a real Chromium as a user would. Prints a report as one line of JSON.
 *
 * Standard input: {url, chromium, token, profile, screenshot}. The exit code is 1 when a step timed out.
 */
import { chromium } from "playwright-core";
import { readInput } from "./browser.mjs";

const TIMEOUT_MS = 45_000;

/** The endings of the paths by which Monaco identifies the texts of GraphiQL's panes. */
const OPERATION = "operation.graphql";
const VARIABLES = "variables.json";
const RESPONSE = "response.json";

const CHROMIUM_FLAGS = [
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
];

const { url, chromium: executablePath, token, profile, screenshot } = readInput();

const browser = await chromium.launchPersistentContext(profile, {
  executablePath,
  headless: true,
  args: CHROMIUM_FLAGS,
  viewport: { width: 1440, height: 900 },
});
const recorded = recordTraffic(browser);

try {
  const results = await runOperations();
  // The invalid token causes errors in the console.
  const pageErrors = [...recorded.pageErrors];
  const rejectionMessage = await signInWithInvalidToken();
  const viewerOfClient = await openFromClient();
  console.log(
    JSON.stringify({ ...results, viewerOfClient, pageErrors, rejectionMessage, requests: recorded.requests }),
  );
} finally {
  await browser.close();
}

/** Records the requests and console errors of every page, including violations of the content policy. */
function recordTraffic(context) {
  const record = { requests: [], pageErrors: [] };
  context.on("request", (request) => record.requests.push(request.url()));
  context.on("console", (line) => line.type() === "error" && record.pageErrors.push(line.text()));
  context.on("weberror", (error) => record.pageErrors.push(String(error.error())));
  context.on("page", (page) => page.on("websocket", (socket) => record.requests.push(socket.url())));
  return record;
}

/** Runs a query, a mutation and a subscription in two windows. Returns what GraphiQL shows. */
async function runOperations() {
  const first = await openGraphiql(token);
  const page = { title: await first.title(), address: first.url(), tabs: await tabNames(first) };
  await chooseTab(first, "WhoAmI");
  const viewer = (await run(first)).data.viewer;

  const topicId = await createTopic(first);
  const ready = await subscribeToTopic(first, topicId);

  const second = await openGraphiql(token);
  await chooseTab(second, "PostMessage");
  await setText(second, VARIABLES, JSON.stringify({ topicId, text: "a fire on the hill" }));
  const posted = (await run(second)).data.postMessage;

  const event = await waitForResponse(first, (result) => result.data?.topicEvents.message?.id === posted.id);
  await first.bringToFront();
  await first.screenshot({ path: screenshot });
  const isTokenStored = await first.evaluate((text) => JSON.stringify(localStorage).includes(text), token);
  return { ...page, viewer, ready, posted, receivedEvent: event.data.topicEvents, isTokenStored };
}

/** Signs in to the web client, and opens GraphiQL without a link. Returns the viewer there. */
async function openFromClient() {
  const page = await browser.newPage();
  await page.goto(`${url}/#token=${token}`);
  await page.waitForFunction(() => localStorage.getItem("noroshi.token"), undefined, { timeout: TIMEOUT_MS });
  await page.goto(`${url}/graphiql`);
  await chooseTab(page, "WhoAmI");
  return (await run(page)).data.viewer;
}

/** Returns the message that GraphiQL shows when the server rejects the token. */
async function signInWithInvalidToken() {
  const page = await openGraphiql("no-token-at-all");
  await chooseTab(page, "LiveTopic");
  await execute(page);
  return (await waitForResponse(page, (result) => result.errors)).errors[0].message;
}

/** Opens GraphiQL in a new window by a sign-in link. */
async function openGraphiql(linkToken) {
  const page = await browser.newPage();
  page.setDefaultTimeout(TIMEOUT_MS);
  await page.goto(`${url}/graphiql#token=${linkToken}`);
  await page.getByRole("region", { name: "Operation Editor" }).locator(".view-line").first().waitFor();
  return page;
}

function tabNames(page) {
  return page.locator(".graphiql-tab-button").allInnerTexts();
}

async function createTopic(page) {
  await page.getByRole("button", { name: "New tab" }).click();
  await setText(
    page,
    OPERATION,
    'mutation CreateCommunity { createCommunity(input: {name: "Hills"}) { id } }',
  );
  await waitForTabName(page, "CreateCommunity");
  const communityId = (await run(page)).data.createCommunity.id;
  const input = `{communityId: "${communityId}", title: "Watch"}`;
  await setText(page, OPERATION, `mutation CreateTopic { createTopic(input: ${input}) { id } }`);
  await waitForTabName(page, "CreateTopic");
  return (await run(page)).data.createTopic.id;
}

async function subscribeToTopic(page, topicId) {
  await chooseTab(page, "LiveTopic");
  await setText(page, VARIABLES, JSON.stringify({ topicId }));
  return (await run(page)).data.topicEvents;
}

/** Waits until GraphiQL has parsed the changed document and named the tab after its operation. */
async function waitForTabName(page, name) {
  await page.locator(`.graphiql-tab-active [title="${name}"]`).waitFor();
}

/** Chooses the first tab with this name. In a second window, two tabs may have the same name. */
async function chooseTab(page, name) {
  await page.locator(`.graphiql-tab-button[title="${name}"]`).first().click();
  await waitForTabName(page, name);
}

/** Replaces an editor's whole text. Typed text would change, because the editor closes brackets. */
async function setText(page, file, text) {
  await page.evaluate(
    ([ending, value]) => {
      const models = globalThis.__MONACO.editor.getModels();
      models.find((model) => model.uri.path.endsWith(ending)).setValue(value);
    },
    [file, text],
  );
}

async function execute(page) {
  await page.getByRole("button", { name: /^Execute query/ }).click();
}

/** Runs the tab's operation. Returns the first response with data. */
async function run(page) {
  await execute(page);
  return waitForResponse(page, (result) => result.data);
}

/** Waits until `accepts` returns true for the JSON in the response pane. Returns that JSON. */
async function waitForResponse(page, accepts) {
  const until = Date.now() + TIMEOUT_MS;
  let text = "";
  while (Date.now() < until) {
    text = await textOf(page, RESPONSE);
    const result = parseJson(text);
    if (result && accepts(result)) return result;
    await page.waitForTimeout(50);
  }
  throw new Error(`The response pane did not show the expected response in time. It shows: ${text}`);
}

function textOf(page, file) {
  return page.evaluate((ending) => {
    const models = globalThis.__MONACO.editor.getModels();
    return models.find((model) => model.uri.path.endsWith(ending))?.getValue() ?? "";
  }, file);
}

function parseJson(text) {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
