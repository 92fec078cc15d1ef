/**
 * Browses more communities than fit on a page, and more topics than the first page shows, in a real Chromium, by
 * keyboard alone. Joins a community, lists the founder's communities, and makes topics active. Prints a report as one
 * line of JSON.
 *
 * Standard input: {url, chromium, tokens: {ann, ben}, screenshots}.
 */

import { readInput } from "../browser.mjs";
import { press } from "../keyboard.mjs";
import { openScreenChecker } from "../screen-checker.mjs";

const COMMUNITIES = 60;
const TOPICS = 75;
const BATCH_SIZE = 15;

const { tokens, ...options } = readInput();
const { findings, run, open, checkVariants, close } = await openScreenChecker(options);

try {
  const communities = await createMany(
    COMMUNITIES,
    (n) => `createCommunity(input: {name: "Hill ${n}", description: "A beacon."}) { id }`,
  );
  const ben = await open(tokens.ben, "/browse");
  const rows = ben.getByRole("heading", { level: 2, name: /^Hill/ });
  await rows.first().waitFor();
  const firstPage = await rows.count();
  await press(ben, ben.getByRole("button", { name: "More communities" }));
  await ben.getByRole("heading", { name: `Hill ${COMMUNITIES - 1}` }).waitFor();
  const names = await rows.allInnerTexts();
  await checkVariants(ben, "communities");
  await press(ben, ben.getByRole("button", { name: "Join Hill 55" }));
  await ben.getByRole("region", { name: "Hill 55" }).waitFor();
  const communityId = communities[55].id;
  const topics = await createMany(
    TOPICS,
    (n) => `createTopic(input: {communityId: "${communityId}", title: "Fire ${n}"}) { id }`,
  );
  const ann = await open(tokens.ann, "/chat");
  const joined = await joinedCommunities(ann);
  const activeTopics = [await postToTopic(ann, topics[3].id)];
  await checkVariants(ann, "topics");
  const pages = await allTopics(ann);
  activeTopics.push(await postToTopic(ann, topics[5].id));
  console.log(JSON.stringify({ firstPage, names, joined, topics: pages, activeTopics, ...findings }));
} finally {
  await close();
}

/** Creates `count` items as Ann, several per request, numbered from 00. */
async function createMany(count, mutation) {
  const created = [];
  for (let n = 0; n < count; n += BATCH_SIZE) {
    const fields = Array.from({ length: BATCH_SIZE }, (_, k) => {
      return `f${k}: ${mutation(String(n + k).padStart(2, "0"))}`;
    });
    created.push(...Object.values(await run(tokens.ann, `mutation { ${fields.join("\n")} }`)));
  }
  return created;
}

/** Returns the communities in the sidebar. */
async function joinedCommunities(page) {
  const chat = page.getByRole("navigation", { name: "Chat" });
  await chat.getByRole("region", { name: `Hill ${COMMUNITIES - 1}` }).waitFor();
  const headings = chat.getByRole("heading", { level: 3, name: /^Hill/ });
  return await headings.locator("a > :last-child").allInnerTexts();
}

function visibleTopics(page) {
  return page.getByRole("region", { name: "Hill 55" }).locator("[data-topic]");
}

/** Loads all pages. Returns how many topics were visible before each further page, and the titles of all topics. */
async function allTopics(page) {
  const topics = visibleTopics(page);
  const more = page.getByRole("button", { name: "More topics in Hill 55" });
  const counts = [];
  while (await more.isVisible()) {
    const count = await topics.count();
    counts.push(count);
    // Hill 55 is near the end of a long list.
    await press(page, more, "Enter", { back: true });
    await topics.nth(count).waitFor();
  }
  const titles = await topics.evaluateAll((rows) =>
    rows.map((row) => row.querySelector("span span").textContent),
  );
  return { counts, titles };
}

/** Posts to a quiet topic. Returns whether the topic moved to the top, and how many topics are visible. */
async function postToTopic(page, topicId) {
  await page.getByRole("region", { name: "Hill 55" }).scrollIntoViewIfNeeded();
  await run(tokens.ben, `mutation { postMessage(input: {topicId: "${topicId}", text: "lit"}) { id } }`);
  const row = page.locator(`[data-topic="${topicId}"]`).filter({ hasText: "1 unread" });
  await row.waitFor();
  const firstId = await visibleTopics(page).first().getAttribute("data-topic");
  return { isFirst: firstId === topicId, count: await visibleTopics(page).count() };
}
