/**
 * Searches messages, topics and people in a real Chromium, by keyboard alone, in both languages. Prints a report as one line of
 * JSON.
 *
 * Standard input: {url, chromium, tokens: {ann, ben, hana}, screenshots}.
 */

import { readInput } from "../browser.mjs";
import { openScreenChecker } from "../screen-checker.mjs";

const { tokens, ...options } = readInput();
const { findings, run, open, close, checkVariants } = await openScreenChecker(options);

try {
  await run(tokens.hana, "{ viewer { id } }");
  await fill();
  const page = await open(tokens.ben, "/home");
  await page.getByRole("heading", { level: 1 }).first().waitFor({ state: "attached" });
  await page.keyboard.press("Control+k");
  await page.getByRole("combobox").waitFor();
  await page.keyboard.type("fireworks");
  await page.getByRole("option", { name: /Search messages for/ }).waitFor();
  await page.keyboard.press("ArrowUp");
  await page.keyboard.press("Enter");
  const results = page.getByRole("list", { name: "Results" });
  await results.getByRole("link").nth(1).waitFor();
  const found = await results.locator("mark").allInnerTexts();
  await checkVariants(page, "search");
  const field = page.getByRole("searchbox");
  const texts = {
    from: await search("fireworks from:ann"),
    japanese: await search("花火大会"),
    phrase: await search('"the river"'),
  };
  await search("from:nobody boat", "alert");
  const refusal = await page.getByRole("alert").innerText();
  await search("secret", "none");
  await openTab("Topics");
  texts.topic = await search("festival");
  await openTab("People");
  await search("nobody", "none");
  texts.people = await searchPeople("ann");
  texts.japanesePeople = await searchPeople("花子");
  await checkVariants(page, "search-people");
  await search("from:me", "alert");
  await openTab("Messages");
  await search("fireworks");
  await page.keyboard.press("Tab");
  while ((await page.evaluate(() => document.activeElement?.getAttribute("data-match"))) === null)
    await page.keyboard.press("Tab");
  await page.keyboard.press("Enter");
  await page.waitForURL(/#\/topic\//);
  await page.getByText("The fireworks begin at eight").first().waitFor();
  console.log(JSON.stringify({ found, texts, refusal, ...findings }));

  async function openTab(name) {
    const tab = page.getByRole("link", { name, exact: true });
    await tab.focus();
    await page.keyboard.press("Enter");
    // A search that is typed earlier is one of the tab before.
    await tab.and(page.locator("[aria-current=page]")).waitFor();
  }

  /** Types a search for people, and returns the highlighted words of the one result. */
  async function searchPeople(words) {
    await submit(words);
    await page.waitForURL((url) => decodeURIComponent(url.hash).endsWith(words));
    // The results of the search before may still be there.
    await results.getByRole("link").locator("mark", { hasText: words }).first().waitFor();
    return await results.locator("mark").allInnerTexts();
  }

  async function submit(words) {
    await field.focus();
    await page.keyboard.press("Control+a");
    await page.keyboard.type(words);
    await page.keyboard.press("Enter");
  }

  /** Types a search. Returns the highlighted words of the results, or waits for an alert or for no results instead. */
  async function search(words, outcome = "results") {
    await submit(words);
    if (outcome === "alert") return await page.getByRole("alert").waitFor();
    if (outcome === "none") return await page.getByText("Nothing found").waitFor();
    const found = results.and(page.locator(`[data-query=${JSON.stringify(words)}]`));
    await found.getByRole("link").first().waitFor();
    return await found.locator("mark").allInnerTexts();
  }
} finally {
  await close();
}

/** Makes Ann and Ben post to a community of both, and Ann to a community of her own. */
async function fill() {
  const { createCommunity: shared } = await run(
    tokens.ann,
    'mutation { createCommunity(input: {name: "Riverside"}) { id } }',
  );
  const { createCommunity: own } = await run(
    tokens.ann,
    'mutation { createCommunity(input: {name: "Own", visibility: PRIVATE}) { id } }',
  );
  await run(tokens.ben, `mutation { joinCommunity(communityId: "${shared.id}") { id } }`);
  const topic = await createTopic(shared.id, "Festival");
  const hidden = await createTopic(own.id, "Hidden");
  await post(tokens.ben, topic, "Who comes to the river?");
  await post(tokens.ben, topic, "明日の花火大会は何時から？");
  await post(tokens.ben, topic, "A firework for everybody");
  await post(tokens.ann, topic, "The fireworks begin at eight");
  await post(tokens.ann, hidden, "A secret about fireworks");
}

async function createTopic(community, title) {
  const input = `{communityId: "${community}", title: "${title}"}`;
  return (await run(tokens.ann, `mutation { createTopic(input: ${input}) { id } }`)).createTopic.id;
}

async function post(token, topic, text) {
  await run(token, `mutation { postMessage(input: {topicId: "${topic}", text: "${text}"}) { id } }`);
}
