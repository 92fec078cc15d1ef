/**
 * Uses GraphiQL as a person would, in a real Chromium, and prints what it saw as one line of JSON.
 *
 * Standard input: {url, chromium, token, profile, screenshot}. Exit code 1 when a step did not happen in time.
 */
import { readFileSync } from "node:fs";
import { chromium } from "playwright-core";

const PATIENCE_MS = 45_000;

/** Monaco's names for GraphiQL's panes. */
const OPERATION = "operation.graphql";
const VARIABLES = "variables.json";
const RESPONSE = "response.json";

const FLAGS = [
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
];

const { url, chromium: executablePath, token, profile, screenshot } = JSON.parse(readFileSync(0, "utf8"));

const browser = await chromium.launchPersistentContext(profile, {
  executablePath,
  headless: true,
  args: FLAGS,
  viewport: { width: 1440, height: 900 },
});
const seen = watch(browser);

try {
  const visited = { ...(await visit()), complaints: [...seen.complaints] };
  console.log(JSON.stringify({ ...visited, refusal: await visitWithBadToken(), requests: seen.requests }));
} finally {
  await browser.close();
}

/** Records the requests and console errors of every page, including violations of the content policy. */
function watch(context) {
  const record = { requests: [], complaints: [] };
  context.on("request", (request) => record.requests.push(request.url()));
  context.on("console", (line) => line.type() === "error" && record.complaints.push(line.text()));
  context.on("weberror", (error) => record.complaints.push(String(error.error())));
  context.on("page", (page) => page.on("websocket", (socket) => record.requests.push(socket.url())));
  return record;
}

async function visit() {
  const first = await openGraphiql(token);
  const opened = { title: await first.title(), address: first.url(), tabs: await tabNames(first) };
  await choose(first, "WhoAmI");
  const viewer = (await run(first)).data.viewer;

  const topicId = await makeTopic(first);
  const ready = await watchTopic(first, topicId);

  const second = await openGraphiql(token);
  await choose(second, "PostMessage");
  await write(second, VARIABLES, JSON.stringify({ topicId, text: "a fire on the hill" }));
  const posted = (await run(second)).data.postMessage;

  const live = await response(first, (answer) => answer.data?.topicEvents.message?.id === posted.id);
  await first.bringToFront();
  await first.screenshot({ path: screenshot });
  const tokenStored = await first.evaluate((text) => JSON.stringify(localStorage).includes(text), token);
  return { ...opened, viewer, ready, posted, arrived: live.data.topicEvents, tokenStored };
}

/** Returns the message that is shown when the socket rejects the token. */
async function visitWithBadToken() {
  const page = await openGraphiql("no-token-at-all");
  await choose(page, "LiveTopic");
  await execute(page);
  return (await response(page, (answer) => answer.errors)).errors[0].message;
}

async function openGraphiql(linkToken) {
  const page = await browser.newPage();
  page.setDefaultTimeout(PATIENCE_MS);
  await page.goto(`${url}/graphiql#token=${linkToken}`);
  await page.getByRole("region", { name: "Operation Editor" }).locator(".view-line").first().waitFor();
  return page;
}

function tabNames(page) {
  return page.locator(".graphiql-tab-button").allInnerTexts();
}

async function makeTopic(page) {
  await page.getByRole("button", { name: "New tab" }).click();
  await write(page, OPERATION, 'mutation Found { createCommunity(input: {name: "Hills"}) { id } }');
  await named(page, "Found");
  const communityId = (await run(page)).data.createCommunity.id;
  const input = `{communityId: "${communityId}", title: "Watch"}`;
  await write(page, OPERATION, `mutation Open { createTopic(input: ${input}) { id } }`);
  await named(page, "Open");
  return (await run(page)).data.createTopic.id;
}

async function watchTopic(page, topicId) {
  await choose(page, "LiveTopic");
  await write(page, VARIABLES, JSON.stringify({ topicId }));
  return (await run(page)).data.topicEvents;
}

/** Waits until GraphiQL has parsed the changed document, which it shows in the tab's name. */
async function named(page, name) {
  await page.locator(`.graphiql-tab-active [title="${name}"]`).waitFor();
}

/** Chooses the first tab of that name: a second window may show another window's tab twice. */
async function choose(page, name) {
  await page.locator(`.graphiql-tab-button[title="${name}"]`).first().click();
  await named(page, name);
}

/** Replaces an editor's text at once, because the editor closes brackets while one types. */
async function write(page, file, text) {
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

/** Runs the tab's operation. Returns the first answer with data. */
async function run(page) {
  await execute(page);
  return response(page, (answer) => answer.data);
}

/** Returns the response pane's content as soon as it is JSON that `accepts` returns true for. */
async function response(page, accepts) {
  const until = Date.now() + PATIENCE_MS;
  let text = "";
  while (Date.now() < until) {
    text = await read(page, RESPONSE);
    const answer = parsed(text);
    if (answer && accepts(answer)) return answer;
    await page.waitForTimeout(50);
  }
  throw new Error(`The response pane never showed what was expected, but: ${text}`);
}

function read(page, file) {
  return page.evaluate((ending) => {
    const models = globalThis.__MONACO.editor.getModels();
    return models.find((model) => model.uri.path.endsWith(ending))?.getValue() ?? "";
  }, file);
}

function parsed(text) {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
