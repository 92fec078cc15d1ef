/**
 * Two users of the web client, each in a real Chromium window; prints a report as one line of JSON.
 *
 * Standard input: {url, chromium, tokens: {ann, ben}, screenshots}. Ben connects through a proxy that can be cut.
 * Exit code 1 when a step timed out.
 */
import { gzipSync } from "node:zlib";
import { lookAtScreens, lookAtSignIn } from "./screens.mjs";
import { ask as askAt, launch, open as openAt, readOrder, go as visit } from "./visitor.mjs";
import { openWire } from "./wire.mjs";

const SEEDED = 300;
const IN_ONE_REQUEST = 15;

const { url, chromium: executablePath, tokens, screenshots } = readOrder();
const wire = await openWire(new URL(url));
const visitors = await launch(executablePath);
const { browser, requests, complaints } = visitors;
const ask = (token, query, variables) => askAt(url, token, query, variables);
const open = (origin, token, place) => openAt(visitors, origin, token, place);

try {
  const { topicId, seeded } = await seed();
  const ann = await open(url, tokens.ann, `/topic/${topicId}`);
  const scripts_bytes = await compressed_bytes(requests);
  const ben = await open(wire.url, tokens.ben, `/topic/${topicId}`);
  const story = { scripts_bytes };
  story.readMark = await ben.getByTestId("read-mark").count();
  story.mentionLinks = await talk(ann, ben);
  story.missed = await cut(ann, ben);
  story.jump = await jump(ben, topicId, seeded);
  story.fromReactions = await fromReactions(ann);
  story.post = await follow(ann, ben);
  const { viewer } = await ask(tokens.ben, "{ viewer { id } }");
  const places = { topicId, personId: viewer.id, closedTopicId: await closedTopic(), screenshots };
  story.screens = await lookAtScreens(ann, places);
  story.signIn = await lookAtSignIn(browser, url, screenshots);
  console.log(JSON.stringify({ ...story, requests, complaints, wire: wire.url }));
} finally {
  await browser.close();
  wire.close();
}

/** Returns the compressed size of the requested scripts. */
async function compressed_bytes(addresses) {
  const scripts = [...new Set(addresses)].filter((address) => new URL(address).pathname.endsWith(".js"));
  const bodies = await Promise.all(
    scripts.map(async (address) => Buffer.from(await (await fetch(address)).arrayBuffer())),
  );
  return bodies.reduce((sum, body) => sum + gzipSync(body).length, 0);
}

/** Creates a topic with many messages by Ann, in a community that Ben has joined. */
async function seed() {
  const founded = await ask(tokens.ann, 'mutation { createCommunity(input: {name: "Hilltops"}) { id } }');
  const communityId = founded.createCommunity.id;
  await ask(tokens.ben, `mutation { joinCommunity(communityId: "${communityId}") { id } }`);
  const made = `mutation { createTopic(input: {communityId: "${communityId}", title: "Watch"}) { id } }`;
  const topicId = (await ask(tokens.ann, made)).createTopic.id;
  const seeded = [];
  for (let n = 0; n < SEEDED; n += IN_ONE_REQUEST) {
    const posts = Array.from({ length: IN_ONE_REQUEST }, (_, k) => {
      const text = `fire ${n + k}${" on the far hill".repeat((n + k) % 9)}`;
      return `m${k}: postMessage(input: {topicId: "${topicId}", text: "${text}"}) { id timestamp }`;
    });
    seeded.push(...Object.values(await ask(tokens.ann, `mutation { ${posts.join("\n")} }`)));
  }
  return { topicId, seeded };
}

function message(page, text) {
  return page.locator("[data-message]").filter({ hasText: text });
}

async function write(page, text) {
  const field = page.getByRole("textbox", { name: "Message to Watch" });
  await field.fill(text);
  await field.press("Enter");
}

/** Checks that Ann's message reaches Ben, and that his reaction reaches her. */
async function talk(ann, ben) {
  const field = ann.getByRole("textbox", { name: "Message to Watch" });
  await field.fill("smoke in the west, @ben");
  // Enter sends while a handle that is typed in full is suggested.
  await ann.getByRole("option", { name: "@ben" }).waitFor();
  await field.press("Enter");
  const heard = message(ben, "smoke in the west");
  await heard.waitFor();
  await heard.hover();
  await heard.getByRole("button", { name: "React" }).click();
  await ben.getByRole("button", { name: "🔥" }).click();
  await message(ann, "smoke in the west").getByRole("button", { name: "🔥 1" }).waitFor();
  await message(ann, "smoke in the west").getByRole("button", { name: "Who reacted" }).click();
  await ann.getByRole("dialog").getByText("Ben").waitFor();
  await ann.keyboard.press("Escape");
  return await heard.getByRole("link", { name: "@ben" }).count();
}

/** Cuts Ben's connection while both write. Afterwards both must have every message once and in the same order. */
async function cut(ann, ben) {
  wire.cut();
  await ben.locator('[data-connection="broken"]').waitFor({ state: "attached" });
  await ben.getByText("Reconnecting").waitFor();
  await write(ben, "written in the dark");
  await ben.locator("[data-pending]").waitFor();
  for (const n of [1, 2, 3]) {
    await write(ann, `while away ${n}`);
    await message(ann, `while away ${n}`).waitFor();
  }
  wire.mend();
  await message(ann, "written in the dark").waitFor();
  for (const n of [1, 2, 3]) await message(ben, `while away ${n}`).waitFor();
  await ben.locator("[data-pending]").waitFor({ state: "detached" });
  await message(ben, "written in the dark").waitFor();
  const last = (page) =>
    page.locator("[data-message]").evaluateAll((rows) => rows.slice(-4).map((row) => row.dataset.message));
  return { ann: await last(ann), ben: await last(ben) };
}

/** Opens a permalink in the middle of a topic. Older messages must load above it without moving the visible rows. */
async function jump(page, topicId, seeded) {
  const target = seeded[200];
  await visit(page, `/topic/${topicId}/${target.timestamp}`);
  const row = page.locator(`[data-message="${target.id}"]`);
  await row.waitFor();
  await page.waitForTimeout(300);
  const inSight = await row.evaluate((element) => {
    const { top, bottom } = element.getBoundingClientRect();
    return top >= 0 && bottom <= innerHeight;
  });
  const moved_px = [];
  for (let step = 0; step < 2; step++) moved_px.push(await scrollUp(page));
  const rows = await page.locator("[data-message]").count();
  await page.getByRole("button", { name: "Jump to latest" }).click();
  await message(page, "while away 3").waitFor();
  return { inSight, moved_px, rows };
}

/** Returns how far a visible row moves while a page is added above it. */
async function scrollUp(page) {
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
    return { added: box.scrollHeight > height, by: Math.abs(row.getBoundingClientRect().top - before) };
  });
}

async function fromReactions(ann) {
  await visit(ann, "/reactions");
  await ann.getByRole("link", { name: /🔥/ }).click();
  const row = message(ann, "smoke in the west");
  await row.waitFor();
  return await row.evaluate((element) => element.classList.contains("found"));
}

async function follow(ann, ben) {
  const { viewer } = await ask(tokens.ann, "{ viewer { id } }");
  await visit(ben, `/person/${viewer.id}`);
  await ben.getByRole("button", { name: "Follow", exact: true }).click();
  // The button changes at once; the count comes from the server.
  await ben.getByText("1 follower", { exact: true }).waitFor();
  await ben.getByRole("button", { name: "Unfollow" }).waitFor();
  await visit(ben, "/home");
  await ben.getByText("Your feed is quiet").waitFor();
  await visit(ann, "/home");
  await ann.getByRole("textbox", { name: "What’s happening?" }).fill("first light #dawn");
  await ann.getByRole("button", { name: "Post", exact: true }).click();
  await ann.locator("[data-post]").filter({ hasText: "first light" }).waitFor();
  await ben.getByRole("button", { name: "1 new post" }).click();
  await ben.locator("[data-post]").filter({ hasText: "first light" }).waitFor();
  await ann.locator('[data-fan-out="COMPLETED"]').waitFor();
  return await ann.locator("[data-fan-out]").innerText();
}

/** Creates a topic in a community that Ann has not joined. */
async function closedTopic() {
  const { createCommunity } = await ask(
    tokens.ben,
    'mutation { createCommunity(input: {name: "Valley"}) { id } }',
  );
  const made = `mutation { createTopic(input: {communityId: "${createCommunity.id}", title: "Mist"}) { id } }`;
  return (await ask(tokens.ben, made)).createTopic.id;
}
