/** Webhooks of a lighthouse for screenshots, which have sent events to a receiver in this process. */
import { createServer } from "node:http";
import { navigate } from "./browser.mjs";

const CREATE_KEY =
  "mutation ($input: CreateServiceKeyInput!) { done: createServiceKey(input: $input) { key { id } } }";
const CREATE =
  "mutation ($input: CreateWebhookInput!) { done: createWebhook(input: $input) { webhook { id } } }";
const MOVE = "mutation ($input: UpdateWebhookInput!) { updateWebhook(input: $input) { id } }";
const TEST = "mutation ($id: ID!) { testWebhook(webhookId: $id) { id } }";
const POST = "mutation ($input: PostMessageInput!) { postMessage(input: $input) { id } }";
const DELIVERIES = "query ($id: ID!) { webhookDeliveries(webhookId: $id) { outcome } }";
const MESSAGES = ["The lamp is lit.", "Fog from the west, the horn is on.", "灯台の当番、19時に交代します。"];
const WEBHOOKS = [
  {
    path: "/archived",
    address: "https://hooks.harbour.example/services/pier-news",
    name: "Slack: Pier news",
    format: "SLACK",
    eventTypes: ["MessagePosted"],
  },
  {
    path: "/slack",
    address: "https://hooks.harbour.example/services/lighthouse-keepers",
    name: "Slack: Lighthouse keepers",
    format: "SLACK",
    eventTypes: ["MessagePosted", "TopicCreated"],
  },
  {
    path: "/warehouse",
    address: "https://warehouse.harbour.example/noroshi",
    name: "Data warehouse",
    eventTypes: ["MessagePosted", "MessageEdited", "MessageDeleted", "TopicCreated"],
  },
];

/**
 * Returns functions that open the list of webhooks, and the page of one with its deliveries. The webhooks send to
 * loopback first. They then get realistic addresses, and have no types of which later events would be sent there.
 */
export function webhookScreens(run, token, topicId) {
  let created = null;
  const create = () => {
    created ??= createWebhooks(run, token, topicId);
    return created;
  };
  return {
    webhooks: async (page) => {
      await create();
      await navigate(page, "/adminWebhooks");
      await page
        .locator("[data-webhook]")
        .nth(WEBHOOKS.length - 1)
        .waitFor();
    },
    webhook: async (page) => {
      await navigate(page, `/adminWebhooks/${(await create()).at(-1)}`);
      const posted = page.locator('[data-outcome="DELIVERED"]').filter({ hasText: "A message is posted" });
      await posted
        .nth(MESSAGES.length - 1)
        .locator("summary")
        .click();
      await posted
        .nth(MESSAGES.length - 1)
        .locator("pre")
        .first()
        .waitFor();
    },
  };
}

/** Creates the webhooks, and waits until each has sent a test and messages. Returns their ids. */
async function createWebhooks(run, token, topicId) {
  const receiver = await startReceiver();
  const scopes = ["chat:read", "feed:read", "jobs:read"];
  const key = (await run(token, CREATE_KEY, { input: { name: "Events", scopes } })).done.key.id;
  const ids = [];
  for (const { path, address, ...input } of WEBHOOKS) {
    const url = `http://127.0.0.1:${receiver.address().port}${path}`;
    ids.push((await run(token, CREATE, { input: { ...input, url, serviceKeyId: key } })).done.webhook.id);
  }
  for (const id of ids) await run(token, TEST, { id });
  for (const text of MESSAGES) await run(token, POST, { input: { topicId, text } });
  for (const id of ids.slice(1)) await waitForDeliveries(run, token, id);
  await waitForDisabling(run, token, ids[0]);
  for (const [n, webhookId] of ids.entries())
    await run(token, MOVE, { input: { webhookId, url: WEBHOOKS[n].address } });
  receiver.close();
  return ids;
}

async function waitForDeliveries(run, token, id) {
  const delivered = async () => (await run(token, DELIVERIES, { id })).webhookDeliveries;
  while ((await delivered()).length <= MESSAGES.length) await pause();
}

async function waitForDisabling(run, token, id) {
  const found = async () =>
    (await run(token, "{ webhooks { id disabledAt } }")).webhooks.find((each) => each.id === id);
  while (!(await found()).disabledAt) await pause();
}

const pause = () => new Promise((resolve) => setTimeout(resolve, 200));

/** Starts a receiver that answers 410 for an archived channel, and 200 otherwise. */
async function startReceiver() {
  const server = createServer((request, response) => {
    request.resume().on("end", () => {
      const isArchived = request.url === "/archived";
      response.writeHead(isArchived ? 410 : 200).end(isArchived ? "channel_is_archived" : "ok");
    });
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  return server;
}
