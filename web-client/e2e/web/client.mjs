/**
 * Two users of the web client, each in a real Chromium window. Prints a report as one line of JSON.
 *
 * Standard input: {url, chromium, tokens: {ann, ben}, screenshots}. Ben connects through a proxy that this script
 * disconnects. The exit code is 1 when a step timed out.
 */
import { gzipSync } from "node:zlib";
import { launch, navigate, openPage, readInput, runOperation } from "../browser.mjs";
import { startProxy } from "../proxy.mjs";
import { checkScreens, checkSignIn } from "../screens.mjs";

const MESSAGES = 300;
const BATCH_SIZE = 15;

const { url, chromium: executablePath, tokens, screenshots } = readInput();
const proxy = await startProxy(new URL(url));
const session = await launch(executablePath);
const { browser, requests, pageErrors } = session;
const run = (token, query, variables) => runOperation(url, token, query, variables);
const open = (origin, token, path) => openPage(session, origin, token, path);

try {
  const { topicId, messages } = await createTopicWithMessages();
  const ann = await open(url, tokens.ann, `/topic/${topicId}`);
  const scripts_bytes = await firstLoad_bytes(ann);
  const ben = await open(proxy.url, tokens.ben, `/topic/${topicId}`);
  const report = { scripts_bytes };
  report.mentionLinks = await mentionAndReact(ann, ben);
  await ben.waitForFunction(() => document.title.startsWith("("));
  report.title = await ben.title();
  report.afterDisconnect = await disconnect(ann, ben);
  report.permalink = await openPermalink(ben, topicId, messages);
  report.isHighlighted = await openFromReactions(ann);
  report.fanOutProgress = await followAndPost(ann, ben);
  const { viewer } = await run(tokens.ben, "{ viewer { id } }");
  const screenOptions = {
    topicId,
    personId: viewer.id,
    closedTopicId: await createClosedTopic(),
    screenshots,
  };
  report.screens = await checkScreens(ann, screenOptions);
  report.signIn = await checkSignIn(browser, url, screenshots);
  console.log(JSON.stringify({ ...report, requests, pageErrors, proxyUrl: proxy.url }));
} finally {
  await browser.close();
  proxy.close();
}

/** Opens the address of the conversation again, and returns the compressed size of the scripts that this needs. */
async function firstLoad_bytes(page) {
  const before = requests.length;
  await page.reload();
  await page.locator("[data-message]").first().waitFor();
  return await compressed_bytes(requests.slice(before));
}

/** Returns the compressed size of the requested scripts. */
async function compressed_bytes(urls) {
  const scripts = [...new Set(urls)].filter((each) => new URL(each).pathname.endsWith(".js"));
  const bodies = await Promise.all(
    scripts.map(async (script) => Buffer.from(await (await fetch(script)).arrayBuffer())),
  );
  return bodies.reduce((sum, body) => sum + gzipSync(body).length, 0);
}

/**
 * Creates a topic with many messages by Ann, in a community that Ben has joined. Ben has read them, so that the topic
 * opens at its end. Returns its id and the messages.
 */
async function createTopicWithMessages() {
  const community = await run(tokens.ann, 'mutation { createCommunity(input: {name: "Hilltops"}) { id } }');
  const communityId = community.createCommunity.id;
  await run(tokens.ben, `mutation { joinCommunity(communityId: "${communityId}") { id } }`);
  const createTopic = `mutation { createTopic(input: {communityId: "${communityId}", title: "Watch"}) { id } }`;
  const topicId = (await run(tokens.ann, createTopic)).createTopic.id;
  const messages = [];
  for (let n = 0; n < MESSAGES; n += BATCH_SIZE) {
    const posts = Array.from({ length: BATCH_SIZE }, (_, k) => {
      const text = `fire ${n + k}${" on the far hill".repeat((n + k) % 9)}`;
      return `m${k}: postMessage(input: {topicId: "${topicId}", text: "${text}"}) { id timestamp }`;
    });
    messages.push(...Object.values(await run(tokens.ann, `mutation { ${posts.join("\n")} }`)));
  }
  const { timestamp } = messages.at(-1);
  await run(tokens.ben, `mutation { markRead(topicId: "${topicId}", timestamp: "${timestamp}") { id } }`);
  return { topicId, messages };
}

function message(page, text) {
  return page.locator("[data-message]").filter({ hasText: text });
}

async function sendMessage(page, text) {
  const field = page.getByRole("textbox", { name: "Message to Watch" });
  await field.fill(text);
  await field.press("Enter");
}

/** Ann sends a message with a mention, and Ben reacts. Returns the number of mention links that Ben sees. */
async function mentionAndReact(ann, ben) {
  const field = ann.getByRole("textbox", { name: "Message to Watch" });
  await field.fill("smoke in the west, @ben");
  // Enter sends the message, although the list still suggests the completely typed handle.
  await ann.getByRole("option", { name: "@ben" }).waitFor();
  await field.press("Enter");
  const received = message(ben, "smoke in the west");
  await received.waitFor();
  await received.hover();
  await received.getByRole("button", { name: "React" }).click();
  await ben.getByRole("searchbox", { name: "Search emojis" }).fill("flame");
  await ben.getByRole("button", { name: "fire", exact: true }).click();
  await message(ann, "smoke in the west").getByRole("button", { name: "🔥 1" }).waitFor();
  await message(ann, "smoke in the west").getByRole("button", { name: "Who reacted" }).click();
  await ann.getByRole("dialog").getByText("Ben").waitFor();
  await ann.keyboard.press("Escape");
  return await received.getByRole("link", { name: "@ben" }).count();
}

/**
 * Disconnects Ben while both users write. Returns the ids of the last four messages that each user sees afterwards, and
 * for each of Ben's subscriptions whether the server resumed it.
 */
async function disconnect(ann, ben) {
  const resumed = [];
  ben.on("websocket", (socket) =>
    socket.on("framereceived", ({ payload }) => {
      if (payload.includes('"resumed":')) resumed.push(payload.includes('"resumed":true'));
    }),
  );
  proxy.disconnect();
  await ben.locator('[data-connection="broken"]').waitFor({ state: "attached" });
  await ben.getByText("Reconnecting").waitFor();
  await sendMessage(ben, "written in the dark");
  await ben.locator("[data-pending]").waitFor();
  for (const n of [1, 2, 3]) {
    await sendMessage(ann, `while away ${n}`);
    await message(ann, `while away ${n}`).waitFor();
  }
  proxy.reconnect();
  await message(ann, "written in the dark").waitFor();
  for (const n of [1, 2, 3]) await message(ben, `while away ${n}`).waitFor();
  await ben.locator("[data-pending]").waitFor({ state: "detached" });
  await message(ben, "written in the dark").waitFor();
  const last = (page) =>
    page.locator("[data-message]").evaluateAll((rows) => rows.slice(-4).map((row) => row.dataset.message));
  return { ann: await last(ann), ben: await last(ben), resumed: [...resumed] };
}

/**
 * Opens a permalink in the middle of a topic, loads two older pages above the message, and jumps to the latest
 * messages. Returns whether the message was visible, the results of both pages, and the number of rows before the jump.
 */
async function openPermalink(page, topicId, messages) {
  const target = messages[200];
  await navigate(page, `/topic/${topicId}/${target.timestamp}`);
  const row = page.locator(`[data-message="${target.id}"]`);
  await row.waitFor();
  await page.waitForTimeout(300);
  const isVisible = await row.evaluate((element) => {
    const { top, bottom } = element.getBoundingClientRect();
    return top >= 0 && bottom <= innerHeight;
  });
  const olderPages = [];
  for (let step = 0; step < 2; step++) olderPages.push(await loadOlderPage(page));
  const rows = await page.locator("[data-message]").count();
  await page.getByRole("button", { name: "Jump to latest" }).click();
  await message(page, "while away 3").waitFor();
  return { isVisible, olderPages, rows };
}

/**
 * Scrolls up until an older page is loaded. Returns whether it was loaded, and by how many pixels a visible row moved.
 */
async function loadOlderPage(page) {
  return await page.getByTestId("timeline").evaluate(async (box) => {
    const height = box.scrollHeight;
    box.scrollTop = 500;
    const frame = () => new Promise(requestAnimationFrame);
    await frame();
    await frame();
    const middle = box.getBoundingClientRect().top + 300;
    const rows = [...box.querySelectorAll("[data-message]")];
    const row = rows.find((element) => element.getBoundingClientRect().bottom > middle);
    const before = row.getBoundingClientRect().top;
    const until = performance.now() + 30_000;
    while (box.scrollHeight < height + 400 && performance.now() < until) await frame();
    for (let n = 0; n < 10; n++) await frame();
    return {
      isLoaded: box.scrollHeight > height,
      moved_px: Math.abs(row.getBoundingClientRect().top - before),
    };
  });
}

/** Opens a message from the list of reactions. Returns whether the message is highlighted. */
async function openFromReactions(ann) {
  await navigate(ann, "/reactions");
  await ann.getByRole("link", { name: /🔥/ }).click();
  const row = message(ann, "smoke in the west");
  await row.waitFor();
  return await row.evaluate((element) => element.classList.contains("permalink-target"));
}

/** Ben follows Ann and receives her post. Returns the fan-out progress that Ann sees. */
async function followAndPost(ann, ben) {
  const { viewer } = await run(tokens.ann, "{ viewer { id } }");
  await navigate(ben, `/person/${viewer.id}`);
  await ben.getByRole("button", { name: "Follow", exact: true }).click();
  // The button changes at once; the count comes from the server.
  await ben.getByText("1 follower", { exact: true }).waitFor();
  await ben.getByRole("button", { name: "Unfollow" }).waitFor();
  await navigate(ben, "/home");
  await ben.getByText("Your feed is quiet").waitFor();
  await navigate(ann, "/home");
  await ann.getByRole("textbox", { name: "What’s happening?" }).fill("first light #dawn");
  await ann.getByRole("button", { name: "Post", exact: true }).click();
  await ann.locator("[data-post]").filter({ hasText: "first light" }).waitFor();
  await ben.getByRole("button", { name: "1 new post" }).click();
  await ben.locator("[data-post]").filter({ hasText: "first light" }).waitFor();
  await ann.locator("[data-post]").filter({ hasText: "first light" }).locator("time").click();
  await ann.locator('[data-fan-out="COMPLETED"]').waitFor();
  return await ann.locator("[data-fan-out]").innerText();
}

/** Creates a topic in a community that Ann has not joined. Returns the topic's id. */
async function createClosedTopic() {
  const { createCommunity } = await run(
    tokens.ben,
    'mutation { createCommunity(input: {name: "Valley"}) { id } }',
  );
  const createTopic = `mutation { createTopic(input: {communityId: "${createCommunity.id}", title: "Mist"}) { id } }`;
  return (await run(tokens.ben, createTopic)).createTopic.id;
}
