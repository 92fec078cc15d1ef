/**
 * The emoji picker in a real Chromium, by keyboard alone. A person finds an emoji by its name, takes one from a group,
 * and takes a frequent one. Then the person inserts emojis into a message and a post. Prints a report as one line of
 * JSON.
 *
 * Standard input: {url, chromium, tokens: {ann}, screenshots}.
 */
import { navigate, readInput } from "../browser.mjs";
import { expectFocus, focusMessage, press, type } from "../keyboard.mjs";
import { openScreenChecker } from "../screen-checker.mjs";

const { tokens, ...options } = readInput();
const { findings, run, open, checkVariants, close } = await openScreenChecker(options);

try {
  const topic = await createTopic();
  const page = await open(tokens.ann, `/topic/${topic}`);
  await findByName(page);
  await chooseFromGroup(page);
  await chooseFrequent(page);
  const emojis = await storedEmojis(page, topic, 3);
  const message = await insertBetween(page, page.getByRole("textbox", { name: /^Message to/ }), "composer");
  await navigate(page, "/home");
  const post = await insertBetween(page, page.getByRole("textbox", { name: "What’s happening?" }), "post");
  console.log(JSON.stringify({ emojis, texts: [message, post], ...findings }));
} finally {
  await close();
}

/** Creates a topic with a message. Returns the topic's id. */
async function createTopic() {
  const community = (
    await run(tokens.ann, 'mutation { done: createCommunity(input: { name: "Hills" }) { id } }')
  ).done.id;
  const create =
    'mutation ($id: ID!) { done: createTopic(input: { communityId: $id, title: "Watch" }) { id } }';
  const topic = (await run(tokens.ann, create, { id: community })).done.id;
  const post =
    'mutation ($id: ID!) { postMessage(input: { topicId: $id, text: "The beacon is lit" }) { id } }';
  await run(tokens.ann, post, { id: topic });
  return topic;
}

/** Returns the emojis of the message once the server has this many. A page shows a reaction before it is stored. */
async function storedEmojis(page, topic, count) {
  const query =
    'query ($id: ID!) { messages(topicId: $id, latest: "now") { items { reactions { emoji } } } }';
  for (;;) {
    const [message] = (await run(tokens.ann, query, { id: topic })).messages.items;
    if (message.reactions.length === count) return message.reactions.map(({ emoji }) => emoji);
    await page.waitForTimeout(50);
  }
}

function search(page) {
  return page.getByRole("searchbox", { name: "Search emojis" });
}

function reaction(page, emoji) {
  return page.getByRole("button", { name: `${emoji} 1` });
}

async function openPicker(page) {
  const message = await focusMessage(page, "The beacon is lit");
  await press(page, message.getByRole("button", { name: "React", exact: true }));
  await search(page).waitFor();
}

/** Adds an emoji that a search finds. */
async function findByName(page) {
  await openPicker(page);
  await page.getByRole("button", { name: "thumbs up", exact: true }).waitFor();
  await checkVariants(page, "emoji-picker");
  await type(page, search(page), "volcano");
  await press(page, page.getByRole("button", { name: "volcano", exact: true }));
  await reaction(page, "🌋").waitFor();
}

/** Adds the second flag. */
async function chooseFromGroup(page) {
  await openPicker(page);
  await press(page, page.getByRole("button", { name: "Flags", exact: true }));
  const first = page.getByRole("group", { name: "Emojis" }).getByRole("button").first();
  await press(page, first, "ArrowRight", { back: true });
  await page.keyboard.press("Enter");
  await reaction(page, "🚩").waitFor();
}

async function chooseFrequent(page) {
  await openPicker(page);
  const emojis = page.getByRole("group", { name: "Emojis" });
  await press(page, emojis.getByRole("button").first(), "ArrowRight");
  await page.keyboard.press("Enter");
  await reaction(page, "❤️").waitFor();
}

/**
 * Types two words, and inserts an emoji between them. Undoes that, and inserts it again.
 * Returns the texts that the field then has had.
 */
async function insertBetween(page, field, name) {
  await type(page, field, "litnow");
  for (let letters = 0; letters < 3; letters++) await page.keyboard.press("ArrowLeft");
  const texts = [];
  for (const undo of [true, false]) {
    await press(page, page.getByRole("button", { name: "Insert an emoji" }), "Enter", { back: true });
    await expectFocus(page, search(page));
    if (undo) await checkVariants(page, `emoji-${name}`);
    await page.keyboard.type("volcano");
    await press(page, page.getByRole("button", { name: "volcano", exact: true }));
    await expectFocus(page, field);
    texts.push(await field.inputValue());
    if (undo) await page.keyboard.press("Control+Z");
    texts.push(await field.inputValue());
  }
  return texts;
}
