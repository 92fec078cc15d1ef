/**
 * Two users chat in real Chromium windows, with all actions except plain messages. Prints a report as one line of JSON.
 *
 * Standard input: {url, chromium, tokens: {ann, ben}}. This script also serves the website that a message links to. The
 * exit code is 1 when a step timed out.
 */
import { createServer } from "node:http";
import { launch, navigate, openPage, openTab, readInput, runOperation } from "../browser.mjs";

const PIXEL = Buffer.from(
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==",
  "base64",
);

const { url, chromium, tokens } = readInput();
const site = await startSite();
const session = await launch(chromium);
const run = (token, query, variables) => runOperation(url, token, query, variables);

try {
  const topicId = await createTopicWithMessage();
  const ann = await openPage(session, url, tokens.ann, `/topic/${topicId}`);
  const ben = await openPage(session, url, tokens.ben, `/topic/${topicId}`);
  const report = {};
  report.stamp = await sendStamp(ann, ben);
  report.editedMessages = await editMessages(ann, ben);
  await deleteMessage(ann, ben);
  report.preview = await postLink(ann, ben);
  report.tabs = await writeInTwoTabs(ann, ben, topicId);
  await postWithHashtag(ann, ben);
  report.messagesDuringBlock = await blockAndUnblock(ben, topicId);
  report.trending = await isTrending(ben, topicId);
  report.draftOfNextUser = await changeUser(ann, topicId);
  const { requests, pageErrors } = session;
  console.log(JSON.stringify({ ...report, requests, pageErrors }));
} finally {
  await session.browser.close();
  site.close();
}

/** Serves a page with a title and a picture for link previews. */
async function startSite() {
  const server = createServer((request, response) => {
    if (request.url === "/picture.png") return response.setHeader("content-type", "image/png").end(PIXEL);
    const image = `http://${request.headers.host}/picture.png`;
    response.setHeader("content-type", "text/html");
    response.end(
      `<meta property="og:title" content="How to build a beacon"><meta property="og:image" content="${image}">`,
    );
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  return { url: `http://127.0.0.1:${server.address().port}/beacon`, close: () => server.close() };
}

/** Creates a topic with one message, in a community that Ben has joined. Returns the topic's id. */
async function createTopicWithMessage() {
  const community = await run(tokens.ann, 'mutation { createCommunity(input: {name: "Hilltops"}) { id } }');
  const communityId = community.createCommunity.id;
  await run(tokens.ben, `mutation { joinCommunity(communityId: "${communityId}") { id } }`);
  const createTopic = `mutation { createTopic(input: {communityId: "${communityId}", title: "Watch"}) { id } }`;
  const topicId = (await run(tokens.ann, createTopic)).createTopic.id;
  await run(
    tokens.ann,
    `mutation { postMessage(input: {topicId: "${topicId}", text: "the watch begins"}) { id } }`,
  );
  return topicId;
}

function message(page, text) {
  return page.locator("[data-message]").filter({ hasText: text });
}

async function sendMessage(page, text) {
  const field = page.getByRole("textbox", { name: "Message to Watch" });
  await field.fill(text);
  await field.press("Enter");
}

/** Sends the first stamp. Returns its name, and the width of its picture for the other user. */
async function sendStamp(ann, ben) {
  await ann.getByRole("button", { name: "Stamps" }).click();
  const first = ann.getByRole("dialog", { name: "Stamps" }).getByRole("button").first();
  const name = await first.getAttribute("title");
  await first.click();
  const picture = ben.locator("[data-message]").getByRole("img", { name });
  await picture.waitFor();
  return { name, width_px: await width_px(picture) };
}

/** Edits a message by its toolbar, and by ArrowUp in an empty field. Returns the number of messages that Ben sees. */
async function editMessages(ann, ben) {
  await sendMessage(ann, "smoke in the west");
  const mine = message(ann, "smoke in the west");
  await mine.hover();
  await mine.getByRole("button", { name: "Edit message" }).click();
  await ann.getByRole("textbox", { name: "Edit message" }).fill("smoke in the east");
  await ann.getByRole("button", { name: "Save" }).click();
  await message(ben, "smoke in the east").getByText("edited").waitFor();
  await ann.getByRole("textbox", { name: "Message to Watch" }).press("ArrowUp");
  await ann.getByRole("textbox", { name: "Edit message" }).fill("smoke in the north");
  await ann.keyboard.press("Enter");
  await message(ben, "smoke in the north").waitFor();
  return await message(ben, "smoke in the").count();
}

async function deleteMessage(ann, ben) {
  await sendMessage(ann, "never mind");
  await message(ben, "never mind").waitFor();
  const mine = message(ann, "never mind");
  await mine.hover();
  await mine.getByRole("button", { name: "Delete message" }).click();
  await ann.getByRole("dialog", { name: "Delete message" }).getByRole("button", { name: "Delete" }).click();
  await ben.getByTestId("timeline").getByText("This message was deleted.").waitFor();
  await message(ben, "never mind").waitFor({ state: "detached" });
}

/** Posts a link. Returns its preview, whose picture comes from the product. */
async function postLink(ann, ben) {
  await sendMessage(ann, `read this: ${site.url}`);
  const card = message(ben, "read this").getByRole("link", { name: /How to build a beacon/ });
  await card.waitFor();
  return {
    href: await card.getAttribute("href"),
    linkedUrl: site.url,
    imageWidth_px: await width_px(card.locator("img")),
  };
}

/** Returns a picture's natural width once it has loaded. */
async function width_px(picture) {
  return await picture.evaluate(async (image) => {
    await image.decode();
    return image.naturalWidth;
  });
}

/** Writes in two tabs of one user. Returns the ids of the last two messages in each tab. */
async function writeInTwoTabs(ann, ben, topicId) {
  const second = await openTab(session, ann.context(), url, tokens.ann, `/topic/${topicId}`);
  await sendMessage(ann, "from the first tab");
  await sendMessage(second, "from the second tab");
  for (const page of [ann, second, ben]) {
    await message(page, "from the first tab").waitFor();
    await message(page, "from the second tab").waitFor();
  }
  const lastTwo = (page) =>
    page.locator("[data-message]").evaluateAll((rows) => rows.slice(-2).map((row) => row.dataset.message));
  const ids = { first: await lastTwo(ann), second: await lastTwo(second), ben: await lastTwo(ben) };
  await second.close();
  return ids;
}

/**
 * Ann writes a draft and signs out in another tab. Then Ben signs in in the first tab. Returns the text of Ben's
 * message field, which must not contain Ann's draft.
 */
async function changeUser(ann, topicId) {
  await navigate(ann, `/topic/${topicId}`);
  const field = ann.getByRole("textbox", { name: "Message to Watch" });
  await field.fill("for my eyes only");
  const second = await openTab(session, ann.context(), url, tokens.ann, `/topic/${topicId}`);
  await second.getByRole("button", { name: "Account" }).click();
  await second.getByRole("button", { name: "Sign out" }).click();
  await second.getByRole("dialog", { name: "Sign out" }).getByRole("button", { name: "Sign out" }).click();
  await ann.locator("#token").waitFor();
  await ann.evaluate((token) => {
    location.hash = `token=${token}`;
  }, tokens.ben);
  await ann.getByRole("navigation", { name: "Screens" }).waitFor();
  await navigate(ann, `/topic/${topicId}`);
  return await field.inputValue();
}

/** Returns whether the topic is among the trending topics after a second person has posted. */
async function isTrending(page, topicId) {
  await run(
    tokens.ben,
    `mutation { postMessage(input: {topicId: "${topicId}", text: "I see it too"}) { id } }`,
  );
  const link = page.locator('section[aria-labelledby="trending"]').getByRole("link", { name: /Watch/ });
  // The list of trending topics does not update live.
  await page.reload();
  await link.waitFor();
  return (await link.getAttribute("href")).includes(topicId);
}

/** Checks that a post appears under Everyone and on its hashtag's page to a user who does not follow the author. */
async function postWithHashtag(ann, ben) {
  await run(tokens.ann, 'mutation { createPost(input: {text: "first light #Dawn"}) { id } }');
  await navigate(ben, "/everyone");
  const post = ben.locator("[data-post]").filter({ hasText: "first light" });
  await post.getByRole("link", { name: "#Dawn" }).click();
  await ben.getByRole("heading", { name: "#dawn" }).waitFor();
  await post.waitFor();
  await navigate(ann, "/tag/dawn");
  await ann.locator("[data-post]").filter({ hasText: "first light" }).waitFor();
  await navigate(ann, "/tag/dusk");
  await ann.getByText("No posts with #dusk").waitFor();
}

/** Checks that a block hides content and an unblock shows it again. Returns the number of messages during the block. */
async function blockAndUnblock(ben, topicId) {
  const { viewer } = await run(tokens.ann, "{ viewer { id } }");
  await navigate(ben, `/person/${viewer.id}`);
  await ben.getByRole("button", { name: "Block" }).click();
  await ben
    .getByRole("dialog", { name: "Block Ann?" })
    .getByRole("button", { name: "Block", exact: true })
    .click();
  await ben.getByText("You blocked this person").waitFor();
  await navigate(ben, `/topic/${topicId}`);
  await ben.getByText("No messages yet").waitFor();
  const visible = await ben.locator("[data-message]").count();
  await navigate(ben, "/everyone");
  await ben.getByText("Nobody has posted yet").waitFor();
  await navigate(ben, `/person/${viewer.id}`);
  await ben.getByRole("button", { name: "Unblock" }).click();
  await ben.locator("[data-post]").filter({ hasText: "first light" }).waitFor();
  await navigate(ben, `/topic/${topicId}`);
  await message(ben, "smoke in the north").waitFor();
  return visible;
}
