/**
 * Replies to a post in a real Chromium, by keyboard alone. Ann reads them as one notification, of which one reply is
 * deleted. Then she mutes the conversation of the post, and ends the mute in her list. Prints a report as one line of
 * JSON.
 *
 * Standard input: {url, chromium, tokens: {ann, bob, cat, dan}, screenshots}. The others write by the API.
 */
import { navigate, readInput } from "../browser.mjs";
import { press } from "../keyboard.mjs";
import { openScreenChecker } from "../screen-checker.mjs";

const { tokens, ...options } = readInput();
const { findings, run, open, close, checkVariants } = await openScreenChecker(options);
const TEXT = "The harbour is open";

try {
  const post = await create(tokens.ann, { text: TEXT });
  for (const name of ["bob", "cat"]) await reply(name, post);
  await create(tokens.bob, { text: "Good news", quoteOf: post });
  const ann = await open(tokens.ann, "/notifications");
  const row = ann.getByRole("link", { name: /repl/ });
  await row.waitFor();
  const groups = [titleOf(await row.innerText())];
  const last = await reply("dan", post);
  await row.filter({ hasText: "3 replies" }).waitFor();
  groups.push(titleOf(await row.innerText()));
  await checkVariants(ann, "notifications-replies");
  await run(tokens.dan, "mutation ($id: ID!) { deletePost(id: $id) { id } }", { id: last });
  await row.filter({ hasText: "2 replies" }).waitFor();
  groups.push(titleOf(await row.innerText()));
  const rows = await ann.locator("main li").count();
  await press(ann, row);
  await ann.getByText("Reply of cat").waitFor();
  const muted = await mute(ann, post);
  const left = await endMute(ann);
  console.log(JSON.stringify({ groups, rows, muted, left, ...findings }));
} finally {
  await close();
}

/** Creates a post. Returns its id. */
async function create(token, input) {
  const query = "mutation ($input: CreatePostInput!) { createPost(input: $input) { id } }";
  return (await run(token, query, { input })).createPost.id;
}

function reply(name, inReplyTo) {
  return create(tokens[name], { text: `Reply of ${name}`, inReplyTo });
}

/** Returns the line of a row that names the people. */
function titleOf(text) {
  return text
    .split("\n")
    .find((line) => line.includes("your post"))
    .toLowerCase();
}

/** Ann mutes the conversation on the page of the post. Returns her number of notifications after another reply. */
async function mute(page, post) {
  const article = page.locator(`[data-post="${post}"]`).first();
  await press(page, article.getByRole("button", { name: "Mute this conversation" }));
  await article.getByRole("button", { name: "Unmute this conversation" }).waitFor();
  await page.getByText("You get no notifications from this conversation any more.").waitFor();
  await checkVariants(page, "post-muted");
  await reply("cat", post);
  await navigate(page, "/notifications");
  await page.getByText("Nothing new").first().waitFor();
  return await page.locator("main li").count();
}

/** Ann ends the mute in her list, and opens the post. Returns the row of the mute, and the state of the button. */
async function endMute(page) {
  await navigate(page, "/myData");
  const row = page.locator("[data-mute]");
  await row.getByText(TEXT).waitFor();
  await checkVariants(page, "mutes-post");
  const lines = (await row.innerText()).split("\n").filter(Boolean);
  await press(page, row.getByRole("button", { name: `Unmute ${TEXT}` }));
  await row.waitFor({ state: "detached" });
  await navigate(page, "/notifications");
  await page.getByRole("link", { name: /3 replies/ }).waitFor();
  const { myMutes } = await run(tokens.ann, "{ myMutes { id } }");
  return { lines: lines.slice(0, 2), myMutes };
}
