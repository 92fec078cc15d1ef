/**
 * Webhooks in a real Chromium, by keyboard alone. An administrator creates a webhook to a receiver in this script, sends
 * a test, reads its delivery, and disables and enables the webhook. The receiver then fails for a while. Prints a report
 * as one line of JSON.
 *
 * Standard input: {url, chromium, tokens: {ann}, screenshots}. Ann is an ADMIN. The product may send requests to
 * loopback.
 */
import { createHmac } from "node:crypto";
import { createServer } from "node:http";
import { navigate, readInput } from "../browser.mjs";
import { choose, expectFocus, press, replaceText, type } from "../keyboard.mjs";
import { openScreenChecker } from "../screen-checker.mjs";

const { tokens, ...options } = readInput();
const { findings, run, open, checkVariants, close } = await openScreenChecker(options);
const receiver = await startReceiver();

try {
  const topic = await createTopicAndKeys();
  const page = await open(tokens.ann, "/adminWebhooks");
  const report = { refused: await createWebhook(page) };
  report.secret = await takeSecret(page);
  report.test = await sendTest(page, report.secret);
  report.states = await disableAndEnable(page);
  report.trouble = await failAndRecover(page, topic);
  report.again = await sendAgain(page);
  report.edited = await edit(page);
  report.rotated = await rotate(page);
  await replay(page);
  await remove(page);
  report.left = (await run(tokens.ann, "{ webhooks { id } }")).webhooks.length;
  console.log(JSON.stringify({ ...report, ...findings }));
} finally {
  await close();
  receiver.close();
}

/** Starts a receiver that answers with `status`, and keeps the requests in the order in which they arrived. */
async function startReceiver() {
  const requests = [];
  const server = createServer((request, response) => {
    const parts = [];
    request.on("data", (part) => parts.push(part));
    request.on("end", () => {
      const body = Buffer.concat(parts).toString();
      requests.push({ headers: request.headers, body, status: started.status });
      response.writeHead(started.status).end(started.status === 200 ? "Thank you" : "Out of order");
    });
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  const url = `http://127.0.0.1:${server.address().port}/events`;
  const started = { url, requests, status: 200, close: () => server.close() };
  return started;
}

/** Creates a topic in a public community, and keys that read chats and posts. Returns the topic's id. */
async function createTopicAndKeys() {
  const createKey =
    "mutation ($input: CreateServiceKeyInput!) { createServiceKey(input: $input) { key { id } } }";
  await run(tokens.ann, createKey, { input: { name: "Reporter", scopes: ["feed:read"] } });
  await run(tokens.ann, createKey, { input: { name: "Warehouse", scopes: ["chat:read"] } });
  const create = 'mutation { done: createCommunity(input: { name: "Harbour" }) { id } }';
  const community = (await run(tokens.ann, create)).done.id;
  const open =
    'mutation ($id: ID!) { done: createTopic(input: { communityId: $id, title: "Ships" }) { id } }';
  return (await run(tokens.ann, open, { id: community })).done.id;
}

/** Creates a webhook, at first with an address that is not allowed. Returns why the address was refused. */
async function createWebhook(page) {
  await page.getByText("No webhooks").waitFor();
  await press(page, page.getByRole("button", { name: "New webhook" }));
  const dialog = page.getByRole("dialog", { name: "New webhook" });
  await page.keyboard.type("Ship log");
  const address = dialog.getByLabel("Address");
  await type(page, address, "http://10.0.0.1/events");
  await choose(page, dialog.getByLabel("Service key"), "Warehouse");
  await dialog.getByText("The key lacks feed:read.").waitFor();
  await press(page, dialog.getByRole("checkbox", { name: "All events" }), "Space");
  await press(page, dialog.getByText("Limit to communities, topics or jobs"));
  await dialog.getByRole("checkbox", { name: "Harbour" }).waitFor();
  const create = dialog.getByRole("button", { name: "Create", exact: true });
  await press(page, create);
  const refused = await dialog.getByRole("alert").innerText();
  await expectFocus(page, address);
  await checkVariants(page, "new-webhook");
  await replaceText(page, address, receiver.url);
  await press(page, create);
  return refused;
}

function secretField(page) {
  return page.getByRole("dialog").getByRole("textbox", { name: "Secret", exact: true });
}

/** Returns the secret that the dialog shows, which then is in no element of the page any more. */
async function takeSecret(page) {
  const field = secretField(page);
  await field.waitFor();
  await checkVariants(page, "webhook-secret");
  const secret = await field.inputValue();
  await press(page, page.getByRole("button", { name: "Done" }));
  await expectFocus(page, page.getByRole("button", { name: "New webhook" }));
  if ((await page.content()).includes(secret)) throw new Error("The page still has the secret.");
  await checkVariants(page, "webhooks");
  return secret;
}

function deliveries(page, outcome) {
  return page.locator(`[data-outcome="${outcome}"]`);
}

/** Sends a test. Returns what the delivery shows, and whether the secret has signed the request. */
async function sendTest(page, secret) {
  await press(page, page.getByRole("link", { name: "Ship log" }));
  await page.getByText("No deliveries").waitFor();
  await press(page, page.getByRole("button", { name: "Send test" }));
  const delivery = deliveries(page, "DELIVERED").first();
  await delivery.waitFor();
  await press(page, delivery.locator("summary"));
  const request = await delivery.getByRole("region", { name: "Request" }).locator("pre").innerText();
  const answer = await delivery.getByRole("region", { name: "Answer" }).locator("pre").innerText();
  await checkVariants(page, "webhook");
  return {
    summary: await delivery.locator("summary").innerText(),
    request: JSON.parse(request),
    answer,
    isSigned: isSigned(receiver.requests[0], secret),
  };
}

/** Returns whether the secret has signed the request, as described by Standard Webhooks. */
function isSigned({ headers, body }, secret) {
  const key = Buffer.from(secret.replace("whsec_", ""), "base64");
  const signed = `${headers["webhook-id"]}.${headers["webhook-timestamp"]}.${body}`;
  const signature = createHmac("sha256", key).update(signed).digest("base64");
  return headers["webhook-signature"].split(" ").includes(`v1,${signature}`);
}

function badge(page, state) {
  return page.locator(`[data-webhook-state="${state}"]`);
}

/** Disables and enables the webhook. Returns whether it is disabled in the API after each, and the notice. */
async function disableAndEnable(page) {
  const isDisabled = async () =>
    (await run(tokens.ann, "{ webhooks { disabledAt } }")).webhooks[0].disabledAt !== null;
  await press(page, page.getByRole("button", { name: "Disable" }));
  await badge(page, "disabled").waitFor();
  const states = [await isDisabled()];
  const notice = await page.getByText(/^Disabled .* by an administrator/).innerText();
  await checkVariants(page, "webhook-disabled");
  await press(page, page.getByRole("button", { name: "Enable" }));
  await badge(page, "enabled").waitFor();
  return { disabled: [...states, await isDisabled()], notice };
}

/** Lets the receiver fail and recover while there is a message. Returns the notice, and the text of the failures. */
async function failAndRecover(page, topic) {
  receiver.status = 500;
  const post = 'mutation ($id: ID!) { postMessage(input: { topicId: $id, text: "The ferry is in" }) { id } }';
  await run(tokens.ann, post, { id: topic });
  await badge(page, "failing").waitFor();
  const notice = await page.getByText(/^Requests have failed since/).innerText();
  const error = await page.getByText(/^Last error/).innerText();
  await choose(page, page.getByLabel("Outcome"), "Failed");
  await deliveries(page, "FAILED").first().waitFor();
  await deliveries(page, "DELIVERED").first().waitFor({ state: "detached" });
  await checkVariants(page, "webhook-failing");
  await press(page, page.getByRole("link", { name: "Back" }), "Enter", { back: true });
  await page.locator("[data-webhook]").waitFor();
  await checkVariants(page, "webhooks-failing");
  receiver.status = 200;
  await press(page, page.getByRole("link", { name: "Ship log" }));
  await badge(page, "enabled").waitFor();
  return { notice, error };
}

/** Sends the message again. Returns the `webhook-id` of each request that has it and was answered by 200. */
async function sendAgain(page) {
  const posted = deliveries(page, "DELIVERED").filter({ hasText: "A message is posted" });
  await posted.first().waitFor();
  await press(page, posted.first().locator("summary"));
  await press(page, posted.first().getByRole("button", { name: /^Send again/ }));
  await posted.nth(1).waitFor();
  return messages()
    .filter(({ status }) => status === 200)
    .map(({ headers }) => headers["webhook-id"]);
}

/** Returns the requests with the message of the topic. */
function messages() {
  return receiver.requests.filter(({ body }) => {
    const { type, data } = JSON.parse(body);
    return type === "MessagePosted" && JSON.stringify(data).includes("The ferry is in");
  });
}

/** Limits the webhook to a topic that does not exist, then to a community. Returns the refusal, and the limits. */
async function edit(page) {
  await press(page, page.getByRole("button", { name: "Edit" }), "Enter", { back: true });
  const dialog = page.getByRole("dialog", { name: "Edit Ship log" });
  await press(page, dialog.getByText("Limit to communities, topics or jobs"));
  await type(page, dialog.getByLabel("Topics", { exact: true }), "nowhere");
  const save = dialog.getByRole("button", { name: "Save" });
  await press(page, save);
  const refused = await dialog.getByRole("alert").innerText();
  await checkVariants(page, "edit-webhook");
  await press(page, dialog.getByLabel("Topics", { exact: true }), "Control+A");
  await page.keyboard.press("Delete");
  await press(page, dialog.getByRole("checkbox", { name: "Harbour" }), "Space");
  await press(page, save);
  await dialog.waitFor({ state: "detached" });
  return { refused, limits: await page.getByText(/^only of/).innerText() };
}

/** Rotates the secret. Returns the new one. */
async function rotate(page) {
  await press(page, page.getByRole("button", { name: "Rotate secret …" }));
  await checkVariants(page, "rotate-webhook");
  await press(page, page.getByRole("dialog").getByRole("button", { name: "Rotate", exact: true }));
  const field = secretField(page);
  await field.waitFor();
  const secret = await field.inputValue();
  await press(page, page.getByRole("button", { name: "Done" }));
  await page.getByText(/requests are also signed by the previous secret until/).waitFor();
  return secret;
}

/** Sends the events of the last hour again, and waits for the message. */
async function replay(page) {
  const { length } = messages();
  await press(page, page.getByRole("button", { name: "Replay …" }));
  await checkVariants(page, "replay-webhook");
  await press(page, page.getByRole("dialog").getByRole("button", { name: "Replay", exact: true }));
  await page.getByText("The events are sent again").waitFor();
  while (messages().length === length) await page.waitForTimeout(50);
}

async function remove(page) {
  await press(page, page.getByRole("button", { name: "Delete …" }));
  await checkVariants(page, "delete-webhook");
  await press(page, page.getByRole("dialog").getByRole("button", { name: "Delete", exact: true }));
  await page.getByText("No webhooks").waitFor();
  await navigate(page, "/adminAudit");
  await page.getByText(/deleted a webhook/).waitFor();
}
