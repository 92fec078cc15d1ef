/**
 * Chat actions other than plain messages, each in a real Chromium window; prints a report as one line of JSON.
 *
 * Standard input: {url, chromium, tokens: {ann, ben}}. This script also serves the page that a message links to. Exit
 * code 1 when a step timed out.
 */
import { createServer } from "node:http";
import { ask as askAt, go, launch, open, openTab, readOrder } from "./visitor.mjs";

const PIXEL = Buffer.from(
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==",
  "base64",
);

const { url, chromium, tokens } = readOrder();
const site = await openSite();
const visitors = await launch(chromium);
const ask = (token, query, variables) => askAt(url, token, query, variables);

try {
  const topicId = await seed();
  const ann = await open(visitors, url, tokens.ann, `/topic/${topicId}`);
  const ben = await open(visitors, url, tokens.ben, `/topic/${topicId}`);
  const story = {};
  story.stamp = await stamp(ann, ben);
  story.edited = await edit(ann, ben);
  await remove(ann, ben);
  story.preview = await preview(ann, ben);
  story.tabs = await twoTabs(ann, ben, topicId);
  story.trending = await trending(ben, topicId);
  await everyone(ann, ben);
  story.blocked = await block(ben, topicId);
  const { requests, complaints } = visitors;
  console.log(JSON.stringify({ ...story, requests, complaints }));
} finally {
  await visitors.browser.close();
  site.close();
}

/** Serves a page with a title and a picture for link previews. */
async function openSite() {
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

async function seed() {
  const founded = await ask(tokens.ann, 'mutation { createCommunity(input: {name: "Hilltops"}) { id } }');
  const communityId = founded.createCommunity.id;
  await ask(tokens.ben, `mutation { joinCommunity(communityId: "${communityId}") { id } }`);
  const made = `mutation { createTopic(input: {communityId: "${communityId}", title: "Watch"}) { id } }`;
  const topicId = (await ask(tokens.ann, made)).createTopic.id;
  await ask(
    tokens.ann,
    `mutation { postMessage(input: {topicId: "${topicId}", text: "the watch begins"}) { id } }`,
  );
  return topicId;
}

function message(page, text) {
  return page.locator("[data-message]").filter({ hasText: text });
}

async function write(page, text) {
  const field = page.getByRole("textbox", { name: "Message to Watch" });
  await field.fill(text);
  await field.press("Enter");
}

async function stamp(ann, ben) {
  await ann.getByRole("button", { name: "Stamps" }).click();
  const first = ann.getByRole("dialog", { name: "Stamps" }).getByRole("button").first();
  const name = await first.getAttribute("title");
  await first.click();
  const picture = ben.locator("[data-message]").getByRole("img", { name });
  await picture.waitFor();
  return { name, width: await width_px(picture) };
}

/** Edits a message from the toolbar, and by ArrowUp in an empty field. */
async function edit(ann, ben) {
  await write(ann, "smoke in the west");
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

async function remove(ann, ben) {
  await write(ann, "never mind");
  await message(ben, "never mind").waitFor();
  const mine = message(ann, "never mind");
  await mine.hover();
  await mine.getByRole("button", { name: "Delete message" }).click();
  await ann.getByRole("dialog", { name: "Delete message" }).getByRole("button", { name: "Delete" }).click();
  await ben.getByText("This message was deleted.").waitFor();
  await message(ben, "never mind").waitFor({ state: "detached" });
}

/** Returns the link preview, whose picture is loaded through the product. */
async function preview(ann, ben) {
  await write(ann, `read this: ${site.url}`);
  const card = message(ben, "read this").getByRole("link", { name: /How to build a beacon/ });
  await card.waitFor();
  return {
    href: await card.getAttribute("href"),
    own: site.url,
    loaded: await width_px(card.locator("img")),
  };
}

/** Returns a picture's natural width once it has loaded. */
async function width_px(picture) {
  return await picture.evaluate(async (image) => {
    await image.decode();
    return image.naturalWidth;
  });
}

/** Checks that messages of one tab appear once in the other. */
async function twoTabs(ann, ben, topicId) {
  const second = await openTab(visitors, ann.context(), url, tokens.ann, `/topic/${topicId}`);
  await write(ann, "from the first tab");
  await write(second, "from the second tab");
  for (const page of [ann, second, ben]) {
    await message(page, "from the first tab").waitFor();
    await message(page, "from the second tab").waitFor();
  }
  const texts = (page) =>
    page.locator("[data-message]").evaluateAll((rows) => rows.slice(-2).map((row) => row.dataset.message));
  const seen = { first: await texts(ann), second: await texts(second), ben: await texts(ben) };
  await second.close();
  return seen;
}

async function trending(page, topicId) {
  const link = page.locator('section[aria-labelledby="trending"]').getByRole("link", { name: /Watch/ });
  // The list is loaded with the page.
  await page.reload();
  await link.waitFor();
  return (await link.getAttribute("href")).includes(topicId);
}

/** A post appears under Everyone and on its hashtag's page, also to users who do not follow its author. */
async function everyone(ann, ben) {
  await ask(tokens.ann, 'mutation { createPost(input: {text: "first light #Dawn"}) { id } }');
  await go(ben, "/everyone");
  const post = ben.locator("[data-post]").filter({ hasText: "first light" });
  await post.getByRole("link", { name: "#Dawn" }).click();
  await ben.getByRole("heading", { name: "#dawn" }).waitFor();
  await post.waitFor();
  await go(ann, "/tag/dawn");
  await ann.locator("[data-post]").filter({ hasText: "first light" }).waitFor();
  await go(ann, "/tag/dusk");
  await ann.getByText("No posts with #dusk").waitFor();
}

/** Hides a blocked user's content on every screen, and shows it again after the unblock. */
async function block(ben, topicId) {
  const { viewer } = await ask(tokens.ann, "{ viewer { id } }");
  await go(ben, `/person/${viewer.id}`);
  await ben.getByRole("button", { name: "Block" }).click();
  await ben
    .getByRole("dialog", { name: "Block Ann?" })
    .getByRole("button", { name: "Block", exact: true })
    .click();
  await ben.getByText("You blocked this person").waitFor();
  await go(ben, `/topic/${topicId}`);
  await ben.getByText("No messages yet").waitFor();
  const hidden = await ben.locator("[data-message]").count();
  await go(ben, "/everyone");
  await ben.getByText("Nobody has posted yet").waitFor();
  await go(ben, `/person/${viewer.id}`);
  await ben.getByRole("button", { name: "Unblock" }).click();
  await ben.locator("[data-post]").filter({ hasText: "first light" }).waitFor();
  await go(ben, `/topic/${topicId}`);
  await message(ben, "smoke in the north").waitFor();
  return hidden;
}
