/**
 * Browses more communities than fit on a page and more topics than are shown at first, in a real Chromium: joins one,
 * checks that the founder's list is complete, and that visible topics update live. Prints a report as one line of
 * JSON.
 *
 * Standard input: {url, chromium, tokens: {ann, ben}, screenshots}.
 */
import { beginLooking } from "./looking.mjs";
import { readOrder } from "./visitor.mjs";

const COMMUNITIES = 60;
const TOPICS = 75;
const IN_ONE_REQUEST = 15;

const { tokens, ...where } = readOrder();
const { seen, ask, open, close } = await beginLooking(where);

try {
  const hills = await many(
    COMMUNITIES,
    (n) => `createCommunity(input: {name: "Hill ${n}", description: "A beacon."}) { id }`,
  );
  const ben = await open(tokens.ben, "/browse");
  const rows = ben.getByRole("heading", { level: 2, name: /^Hill/ });
  await rows.first().waitFor();
  const first = await rows.count();
  await ben.getByRole("button", { name: "More communities" }).click();
  await ben.getByRole("heading", { name: `Hill ${COMMUNITIES - 1}` }).waitFor();
  const names = await rows.allInnerTexts();
  await ben.getByRole("button", { name: "Join Hill 55" }).click();
  await ben.getByRole("region", { name: "Hill 55" }).waitFor();
  const hill = hills[55].id;
  const fires = await many(
    TOPICS,
    (n) => `createTopic(input: {communityId: "${hill}", title: "Fire ${n}"}) { id }`,
  );
  const ann = await open(tokens.ann, "/chat");
  const joined = await allJoined(ann);
  const risen = [await rise(ann, fires[3].id)];
  const topics = await allTopics(ann);
  risen.push(await rise(ann, fires[5].id));
  console.log(JSON.stringify({ first, names, joined, topics, risen, ...seen }));
} finally {
  await close();
}

/** Creates `count` items as Ann, several per request, numbered from 00. */
async function many(count, mutation) {
  const made = [];
  for (let n = 0; n < count; n += IN_ONE_REQUEST) {
    const fields = Array.from({ length: IN_ONE_REQUEST }, (_, k) => {
      return `f${k}: ${mutation(String(n + k).padStart(2, "0"))}`;
    });
    made.push(...Object.values(await ask(tokens.ann, `mutation { ${fields.join("\n")} }`)));
  }
  return made;
}

/** Returns the communities in Ann's list, which holds more than one page. */
async function allJoined(page) {
  const chat = page.getByRole("navigation", { name: "Chat" });
  await chat.getByRole("region", { name: `Hill ${COMMUNITIES - 1}` }).waitFor();
  return await chat.getByRole("heading", { level: 3, name: /^Hill/ }).allInnerTexts();
}

function shownTopics(page) {
  return page.getByRole("region", { name: "Hill 55" }).locator("[data-topic]");
}

/** Returns the number of topics before each page and after the last one, and their titles. */
async function allTopics(page) {
  const topics = shownTopics(page);
  const more = page.getByRole("button", { name: "More topics in Hill 55" });
  const counts = [];
  while (await more.isVisible()) {
    const shown = await topics.count();
    counts.push(shown);
    await more.click();
    await topics.nth(shown).waitFor();
  }
  const titles = await topics.evaluateAll((rows) =>
    rows.map((row) => row.querySelector("span span").textContent),
  );
  return { counts, titles };
}

/** Makes a quiet topic active. Returns whether it moved to the top, and how many topics are shown. */
async function rise(page, topicId) {
  await page.getByRole("region", { name: "Hill 55" }).scrollIntoViewIfNeeded();
  await ask(tokens.ben, `mutation { postMessage(input: {topicId: "${topicId}", text: "lit"}) { id } }`);
  const row = page.locator(`[data-topic="${topicId}"]`).filter({ hasText: "1 unread" });
  await row.waitFor();
  const first = await shownTopics(page).first().getAttribute("data-topic");
  return { first: first === topicId, count: await shownTopics(page).count() };
}
