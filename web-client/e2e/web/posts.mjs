/**
 * Posts of two people side by side in a real Chromium, by keyboard alone. One writes a post. The other reposts it,
 * reacts, quotes it and replies on a phone. The first one reads the notifications and the replies, and edits the post.
 * Reactions of others join a notification, also while the list is open.
 * Then new posts appear on the pages of everyone and of a hashtag. Prints a report as one line of JSON.
 *
 * Standard input: {url, chromium, tokens: {ann, bob, cat, dan}, screenshots}.
 */
import { navigate, readInput } from "../browser.mjs";
import { press, replaceText, type } from "../keyboard.mjs";
import { openScreenChecker } from "../screen-checker.mjs";

const { tokens, ...options } = readInput();
const { findings, run, open, close, checkVariants } = await openScreenChecker(options);
const PHONE = { viewport: { width: 360, height: 740 } };

try {
  const { viewer: ann } = await run(tokens.ann, "{ viewer { id } }");
  await run(tokens.bob, "mutation ($id: ID!) { follow(userId: $id) { id } }", { id: ann.id });
  const annPage = await open(tokens.ann, "/home");
  const bobPage = await open(tokens.bob, "/home", PHONE);
  await type(annPage, annPage.getByRole("textbox", { name: "What’s happening?" }), "The harbour is open");
  await press(annPage, annPage.getByRole("button", { name: "Post", exact: true }));
  const annPost = article(annPage, "The harbour is open");
  await annPost.waitFor();
  await press(bobPage, bobPage.getByRole("button", { name: "1 new post" }));
  const bobPost = article(bobPage, "The harbour is open").first();
  await press(bobPage, bobPost.getByRole("button", { name: /^Repost/ }));
  await bobPost.getByRole("button", { name: "Repost, 1 repost", pressed: true }).waitFor();
  await press(bobPage, bobPost.getByRole("button", { name: "React" }));
  await press(bobPage, bobPage.getByRole("button", { name: "thumbs up", exact: true }));
  await bobPost.getByRole("button", { name: "👍 1", pressed: true }).waitFor();
  await press(bobPage, bobPost.getByRole("button", { name: "Quote, 0 quotes" }));
  await type(bobPage, bobPage.getByRole("textbox", { name: "Write about this post" }), "Good news");
  await checkVariants(bobPage, "post-quote");
  await press(bobPage, bobPage.getByRole("dialog").getByRole("button", { name: "Post", exact: true }));
  const quote = article(bobPage, "Good news");
  await quote.getByRole("blockquote").getByText("The harbour is open").waitFor();
  await checkVariants(bobPage, "post-home");
  const original = article(bobPage, "The harbour is open").filter({ hasNotText: "Good news" }).first();
  await press(bobPage, original.getByRole("link", { name: /^Reply/ }));
  await type(bobPage, bobPage.getByRole("textbox", { name: "Write a reply" }), "We are on our way");
  await press(bobPage, bobPage.getByRole("button", { name: "Reply", exact: true }));
  await article(bobPage, "We are on our way").waitFor();
  await checkVariants(bobPage, "post-page");

  await react(tokens.cat, ann.id, "🎉");
  await press(annPage, annPage.getByRole("link", { name: /^Notifications/ }));
  const reply = annPage.getByRole("link", { name: /bob replied to your post/i });
  await reply.waitFor();
  const grouped = await groupedNotifications(annPage, ann.id);
  const notifications = await annPage.locator("main li").count();
  await press(annPage, reply);
  await article(annPage, "We are on our way").waitFor();
  await annPage.getByText("The harbour is open").first().waitFor();
  await checkVariants(annPage, "post-reply");
  await press(annPage, article(annPage, "The harbour is open").getByRole("link", { name: /^Reply/ }));
  await annPage.getByRole("button", { name: "Repost, 1 repost", pressed: false }).waitFor();
  await annPage.getByRole("button", { name: "👍 1", pressed: false }).waitFor();
  const replyLink = annPage.getByRole("link", { name: "Reply, 1 reply" });
  await replyLink.first().waitFor();
  const replies = await replyLink.count();
  await press(annPage, article(annPage, "The harbour is open").getByRole("button", { name: "Edit post" }));
  await replaceText(
    annPage,
    annPage.getByRole("textbox", { name: "Edit post" }),
    "The harbour is open again",
  );
  await press(annPage, annPage.getByRole("button", { name: "Save" }));
  await press(annPage, annPage.getByRole("button", { name: "edited", exact: true }));
  await annPage.getByRole("dialog", { name: "Earlier texts" }).getByText("The harbour is open").waitFor();
  await checkVariants(annPage, "post-versions");
  await annPage.keyboard.press("Escape");
  const edited = await article(annPage, "The harbour is open again").count();
  const live = [await newPostsOf(annPage, "/everyone"), await newPostsOf(annPage, "/tag/harbour")];
  console.log(JSON.stringify({ notifications, grouped, replies, edited, live, ...findings }));
} finally {
  await close();
}

/** Dan reacts while Ann reads the list. Returns the row's text before and after, and the numbers of unread rows. */
async function groupedNotifications(page, annId) {
  const row = page.getByRole("link", { name: /reacted .* to your post/ });
  const unread = await page.locator("[data-unread]").count();
  const before = await row.innerText();
  await react(tokens.dan, annId, "🐟");
  await row.filter({ hasText: /dan/i }).waitFor();
  const after = await row.innerText();
  await checkVariants(page, "notifications");
  await navigate(page, "/home");
  await article(page, "The harbour is open").first().waitFor();
  await navigate(page, "/notifications");
  await row.waitFor();
  const unreadLater = await page.locator("[data-unread]").count();
  return { before: firstLines(before), after: firstLines(after), unread, unreadLater };
}

/** Returns the text of a row without the preview and the time. */
function firstLines(text) {
  return text.split("\n").find((line) => line.includes("reacted"));
}

/** Reacts to Ann's first post. */
async function react(token, annId, emoji) {
  const posts = `query ($id: ID!) { posts(authorId: $id, oldest: "0000000000.000000", limit: 1) { items { id } } }`;
  const [{ id }] = (await run(token, posts, { id: annId })).posts.items;
  const mutation =
    "mutation ($id: ID!, $emoji: String!) { addPostReaction(postId: $id, emoji: $emoji) { id } }";
  await run(token, mutation, { id, emoji });
}

/** Opens a page. Bob then posts, and the page shows the post. Returns how often the page shows the post. */
async function newPostsOf(page, path) {
  const text = `Ships on ${path} #harbour`;
  await navigate(page, path);
  await page.getByRole("article").first().waitFor();
  await run(tokens.bob, "mutation ($text: String!) { createPost(input: { text: $text }) { id } }", { text });
  await press(page, page.getByRole("button", { name: "1 new post" }));
  await article(page, text).waitFor();
  return await article(page, text).count();
}

function article(page, text) {
  return page.getByRole("article").filter({ hasText: text });
}
