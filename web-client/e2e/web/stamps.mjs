/**
 * Stamps of an organization in a real Chromium, by keyboard alone. An administrator creates a pack and adds a stamp.
 * Another person sends it and reacts with it. The administrator then locks the pack behind a rule, and gives another
 * pack away. After the removal of the stamp, its name is left. Prints a report as one line of JSON.
 *
 * Standard input: {url, chromium, tokens: {ann, bob}, picture, screenshots}. Ann is an ADMIN. `picture` is the path of a
 * PNG file with the name "lit.png".
 */
import { navigate, readInput } from "../browser.mjs";
import { choose, focusMessage, press, replaceText, tabTo, type } from "../keyboard.mjs";
import { openScreenChecker } from "../screen-checker.mjs";

const { tokens, picture, ...options } = readInput();
const { findings, run, open, checkVariants, close } = await openScreenChecker(options);

try {
  await run(tokens.bob, "{ viewer { id } }");
  const { community, topic } = await createTopic();
  const ann = await open(tokens.ann, "/adminStamps");
  await createPack(ann);
  const refusal = await addBrokenPicture(ann);
  await addPicture(ann);
  await checkVariants(ann, "stamps");
  const bob = await open(tokens.bob, `/topic/${topic}`);
  await sendStamp(bob);
  await reactWithStamp(bob);
  await lockPack(ann);
  await earnPack(bob, topic);
  await givePack(ann, community);
  await takePackBack(ann);
  await removeStamp(ann);
  const packs = (await run(tokens.bob, "{ stampPacks { name availability owned progress } }")).stampPacks;
  const query =
    'query ($id: ID!) { messages(topicId: $id, latest: "now") { items { text stamp { name } reactions { emoji } } } }';
  const { items } = (await run(tokens.ann, query, { id: topic })).messages;
  console.log(JSON.stringify({ refusal, items, packs, ...findings }));
} finally {
  await close();
}

/** Creates a topic with a message, in a community of Ann and Bob. Returns the ids of both. */
async function createTopic() {
  const create = 'mutation { done: createCommunity(input: { name: "Hills" }) { id } }';
  const community = (await run(tokens.ann, create)).done.id;
  await run(tokens.bob, "mutation ($id: ID!) { joinCommunity(communityId: $id) { id } }", { id: community });
  const open =
    'mutation ($id: ID!) { done: createTopic(input: { communityId: $id, title: "Watch" }) { id } }';
  const topic = (await run(tokens.ann, open, { id: community })).done.id;
  const post = 'mutation ($id: ID!) { postMessage(input: { topicId: $id, text: "All quiet" }) { id } }';
  await run(tokens.ann, post, { id: topic });
  return { community, topic };
}

async function createPack(page) {
  await press(page, page.getByRole("button", { name: "New pack" }));
  await type(page, page.getByRole("textbox", { name: "Name of the pack" }), "Harbour");
  await press(page, page.getByRole("button", { name: "Create" }));
  await page.getByRole("heading", { name: "Harbour" }).waitFor();
}

/** Opens the dialog for a stamp, and chooses a file. */
async function chooseFile(page, file) {
  const field = page.getByLabel("Picture");
  const dialog = page.waitForEvent("filechooser");
  await press(page, field);
  await (await dialog).setFiles(file);
}

/** Adds a file that is no picture. Returns the message of the dialog, which stays open. */
async function addBrokenPicture(page) {
  await press(page, page.getByRole("button", { name: "Add stamp" }));
  const buffer = Buffer.from("<svg xmlns='http://www.w3.org/2000/svg'><script>alert(1)</script></svg>");
  await chooseFile(page, { name: "lit.png", mimeType: "image/png", buffer });
  await press(page, page.getByRole("button", { name: "Add", exact: true }));
  const refusal = await page.getByRole("alert").innerText();
  await checkVariants(page, "stamp-refused");
  return refusal;
}

async function addPicture(page) {
  await chooseFile(page, picture);
  await press(page, page.getByRole("button", { name: "Add", exact: true }));
  await page.getByText(":lit:", { exact: true }).waitFor();
}

async function sendStamp(page) {
  await press(page, page.getByRole("button", { name: "Stamps" }));
  const stamp = page.getByRole("region", { name: "Harbour" }).getByRole("button", { name: "lit" });
  await stamp.waitFor();
  await checkVariants(page, "stamp-picker");
  await press(page, stamp);
  await page.locator("[data-message]").getByRole("img", { name: "lit" }).waitFor();
}

async function reactWithStamp(page) {
  const message = await focusMessage(page, "All quiet");
  await press(page, message.getByRole("button", { name: "React", exact: true }));
  await press(page, page.getByRole("button", { name: "Stamps of the organization" }));
  await checkVariants(page, "stamp-reactions");
  const stamp = page.getByRole("group", { name: "Emojis" }).getByRole("button", { name: "lit" });
  await tabTo(page, stamp, { back: true });
  await page.keyboard.press("Enter");
  const picture = page.getByRole("button", { name: ":lit: 1" }).locator("img");
  await picture.waitFor();
  await picture.evaluate((image) => image.decode());
  await checkVariants(page, "stamp-used");
}

/** Lets people earn the pack with two reactions, of which Bob has one. */
async function lockPack(page) {
  await press(page, page.getByRole("button", { name: "Who may use Harbour: Everybody" }));
  const dialog = page.getByRole("dialog");
  await press(page, dialog.getByRole("radio", { name: /^Everybody/ }), "ArrowDown");
  await choose(page, dialog.getByLabel("What is counted"), "Reactions received");
  await replaceText(page, dialog.getByLabel("Number"), "2");
  await checkVariants(page, "stamp-rule");
  await press(page, dialog.getByRole("button", { name: "Save" }));
  await page.getByRole("button", { name: "Who may use Harbour: Receive 2 reactions" }).waitFor();
}

/** Shows Bob the locked pack with his progress, and then the notification of it. */
async function earnPack(page, topic) {
  const react = "mutation ($id: ID!, $emoji: String!) { addReaction(messageId: $id, emoji: $emoji) { id } }";
  const query =
    'query ($id: ID!) { messages(topicId: $id, latest: "now") { items { id author { handle } } } }';
  const { items } = (await run(tokens.bob, query, { id: topic })).messages;
  const { id } = items[0];
  await run(tokens.ann, react, { id, emoji: "👍" });
  await press(page, page.getByRole("button", { name: "Stamps" }));
  const pack = page.getByRole("region", { name: "Harbour" });
  await pack.getByText("Receive 2 reactions").waitFor();
  await pack.getByText("1 of 2").waitFor();
  await checkVariants(page, "stamp-locked");
  await page.keyboard.press("Escape");
  await run(tokens.ann, react, { id, emoji: "🌊" });
  await navigate(page, "/notifications");
  await page.getByText("You earned the stamps “Harbour”").waitFor({ timeout: 60_000 });
  await checkVariants(page, "stamp-earned");
}

/** Gives Bob another pack in the list of members. */
async function givePack(page, community) {
  const create = 'mutation { done: createStampPack(name: "Feast") { id } }';
  const pack = (await run(tokens.ann, create)).done.id;
  const set = "mutation ($id: ID!) { setStampPackAvailability(packId: $id, availability: GIVEN) { id } }";
  await run(tokens.ann, set, { id: pack });
  await navigate(page, `/community/${community}/members`);
  await press(page, page.getByRole("button", { name: /^Actions for .*bob/i }));
  await press(page, page.getByRole("button", { name: "Give a stamp pack" }));
  await page.getByRole("dialog").getByLabel("Pack").waitFor();
  await checkVariants(page, "stamp-give");
  await press(page, page.getByRole("dialog").getByRole("button", { name: "Give", exact: true }));
  await page.getByText(/has the stamps “Feast”/).waitFor();
}

/** Takes the pack back in the list of users. */
async function takePackBack(page) {
  await navigate(page, "/admin");
  await press(page, page.getByRole("button", { name: /^More actions for Bob/i }));
  await press(page, page.getByRole("button", { name: "Stamp packs" }));
  const packs = page.getByRole("list", { name: /^Stamp packs of Bob/i });
  await packs.getByText(/^Given by Ann on/i).waitFor();
  await packs.getByText(/^Earned on/).waitFor();
  await checkVariants(page, "stamp-owned");
  await press(page, packs.getByRole("button", { name: "Take back Feast" }));
  await page.getByText(/no longer has the stamps “Feast”/).waitFor();
  await packs.getByText("Feast").waitFor({ state: "detached" });
  await page.keyboard.press("Escape");
}

/** Removes the stamp as Ann. */
async function removeStamp(page) {
  await navigate(page, "/adminStamps");
  await press(page, page.getByRole("button", { name: "Remove stamp lit" }));
  await press(page, page.getByRole("dialog").getByRole("button", { name: "Remove", exact: true }));
  await page.getByRole("region", { name: "Harbour" }).getByText("This pack has no stamps yet.").waitFor();
}
