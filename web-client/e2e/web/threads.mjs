/**
 * A thread of two people in a real Chromium, by keyboard alone: the first reply, an answer and an edit. Then the reply
 * is opened from a search result, a notification and the list of followed threads. Prints a report as one line of JSON.
 *
 * Standard input: {url, chromium, tokens: {ann, ben}, screenshots}.
 */
import { navigate, readInput } from "../browser.mjs";
import { actOnMessage, press, tabTo, type } from "../keyboard.mjs";
import { openScreenChecker } from "../screen-checker.mjs";
import { createTopic, field, message, post, texts, thread } from "../thread-topic.mjs";

const { tokens, ...options } = readInput();
const { findings, run, open, checkVariants, close } = await openScreenChecker(options);

try {
  const topic = await createTopic(run, tokens.ann, tokens.ben);
  await post(run, tokens.ann, { topicId: topic, text: "Who rows on Sunday?" });
  const ann = await open(tokens.ann, `/topic/${topic}`);
  const ben = await open(tokens.ben, `/topic/${topic}`);
  const report = { empty: await startThread(ben) };
  report.link = await readLink(ann);
  report.replies = await answer(ann, ben);
  report.closed = await closeThread(ben);
  report.found = await openFromSearch(ben);
  report.timeline = await texts(ann.getByTestId("timeline").first());
  report.unread = await listUnread(ann, ben);
  report.notification = await openFromNotification(ann);
  await openFromList(ann);
  report.unfollowed = await unfollow(ann);
  console.log(JSON.stringify({ ...report, ...findings }));
} finally {
  await close();
}

/** Ben opens the thread of Ann's message and replies first. Returns the hint that he reads before. */
async function startThread(ben) {
  await actOnMessage(ben, "Who rows on Sunday?", "button", "Reply in thread");
  await field(ben).waitFor();
  const hint = await thread(ben).getByText("No replies yet").innerText();
  await checkVariants(ben, "thread-empty");
  await type(ben, field(ben), "I do");
  await ben.keyboard.press("Enter");
  await message(thread(ben), "I do").waitFor();
  return hint;
}

/** Returns what Ann reads below her message. */
async function readLink(ann) {
  const link = ann.getByRole("button", { name: "1 reply" });
  await link.waitFor();
  await checkVariants(ann, "thread-link");
  const text = await link.innerText();
  await press(ann, link);
  await message(thread(ann), "I do").waitFor();
  return text.split("\n").find((line) => line.includes("repl"));
}

/** Ann answers, and Ben edits his reply. Returns the replies that Ann sees. */
async function answer(ann, ben) {
  await type(ann, field(ann), "Bring oars");
  await ann.keyboard.press("Enter");
  await message(thread(ben), "Bring oars").waitFor();
  await checkVariants(ben, "thread");
  await tabTo(ben, field(ben));
  await ben.keyboard.press("ArrowUp");
  const edit = thread(ben).getByRole("textbox", { name: "Edit message" });
  await edit.waitFor();
  await ben.keyboard.type(", and Cat");
  await ben.keyboard.press("Enter");
  await message(thread(ann), "I do, and Cat").waitFor();
  return await texts(thread(ann).getByTestId("timeline"));
}

/** Ben closes the thread with Escape. Returns the text of the message that then has the focus. */
async function closeThread(ben) {
  await tabTo(ben, field(ben));
  await ben.keyboard.press("Escape");
  await thread(ben).waitFor({ state: "detached" });
  await ben.getByRole("button", { name: "2 replies" }).waitFor();
  return await ben.evaluate(() => document.activeElement.querySelector("p.whitespace-pre-wrap")?.textContent);
}

/** Ben finds Ann's reply and opens it. Returns the place that the result names. */
async function openFromSearch(ben) {
  await navigate(ben, "/search/messages/oars");
  const match = ben.locator("[data-match]");
  await match.waitFor();
  const place = await match.getByText("Thread").innerText();
  await press(ben, match);
  await message(thread(ben), "Bring oars").waitFor();
  return place;
}

/** Ann leaves the thread, and Ben replies. Returns what Ann reads in her list of threads. */
async function listUnread(ann, ben) {
  await navigate(ann, "/chat");
  const link = ann.getByRole("link", { name: "Threads" });
  await press(ann, link);
  await ann.getByRole("region", { name: "Read", exact: true }).waitFor();
  await type(ben, field(ben), "At ten");
  await ben.keyboard.press("Enter");
  await ann.getByRole("link", { name: "Threads 1 unread" }).waitFor();
  const group = ann.getByRole("region", { name: "Unread", exact: true });
  await group.waitFor();
  await checkVariants(ann, "threads");
  return await group.getByRole("link").innerText();
}

/** Ann opens the notification of Ben's reply, and reads the reply. Returns the text of the notification. */
async function openFromNotification(ann) {
  await navigate(ann, "/notifications");
  const notification = ann.getByRole("link", { name: "At ten" });
  const text = await notification.innerText();
  const marked = ann.waitForResponse(
    (response) => response.request().postData()?.includes("markRead(") ?? false,
  );
  await press(ann, notification);
  await message(thread(ann), "At ten").waitFor();
  await marked;
  return text;
}

/** Ann opens the thread, which she has read meanwhile, from the list. */
async function openFromList(ann) {
  await navigate(ann, "/threads");
  const section = ann.getByRole("region", { name: "Read", exact: true });
  await press(ann, section.getByRole("link"));
  await message(thread(ann), "At ten").waitFor();
}

/** Ann stops following the thread. Returns what the list then shows. */
async function unfollow(ann) {
  await press(ann, ann.getByRole("button", { name: "Unfollow thread" }));
  await ann.getByRole("button", { name: "Follow thread", exact: true }).waitFor();
  await navigate(ann, "/threads");
  const title = ann.getByText("You follow no threads");
  await title.waitFor();
  return await title.innerText();
}
