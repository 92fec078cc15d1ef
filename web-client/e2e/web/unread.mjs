/**
 * Unread messages in a real Chromium, by keyboard: where a topic and a conversation open, what moves the read mark, the
 * way to the newest messages, and the count in the navigation and in the title. Prints a report as one line of JSON.
 *
 * Standard input: {url, chromium, tokens: {ann, ben, cat}, screenshots}. Ann writes, and Ben reads. Cat shares no
 * community with Ben.
 */
import { navigate, readInput } from "../browser.mjs";
import { expectFocus, press } from "../keyboard.mjs";
import { openScreenChecker } from "../screen-checker.mjs";

const BATCH_SIZE = 15;
/** Longer than the web client waits until it moves the read mark. */
const READ_MARK_MS = 1_200;

const { tokens, ...options } = readInput();
const { findings, run, open, checkVariants, close } = await openScreenChecker(options);

try {
  const community = await createCommunity();
  const report = {};
  const topic = await createTopic(community, "Watch");
  const messages = await post(topic, 60);
  await markRead(topic, messages[19]);
  const ben = await open(tokens.ben, `/topic/${topic}`);
  report.opened = await inspect(ben, topic);
  await checkVariants(ben, "unread");
  report.scrolled = await scrollToEnd(ben, topic);
  report.afterCache = await openAgain(ben, topic);
  report.whileHidden = await postWhileHidden(ben, topic);
  report.neverRead = await openNeverRead(ben, community);
  const conversation = await startConversation(tokens.ann);
  report.counts = await countConversations(ben, conversation);
  report.direct = await openDirect(ben, conversation);
  report.linked = await openByLink(ben, community);
  console.log(JSON.stringify({ ...report, ...findings }));
} finally {
  await close();
}

/** Creates a community of Ann that Ben has joined. Returns its id. */
async function createCommunity() {
  const create = 'mutation { done: createCommunity(input: {name: "Hilltops"}) { id } }';
  const { id } = (await run(tokens.ann, create)).done;
  await run(tokens.ben, `mutation { joinCommunity(communityId: "${id}") { id } }`);
  return id;
}

async function createTopic(community, title) {
  const input = `{communityId: "${community}", title: "${title}"}`;
  return (await run(tokens.ann, `mutation { done: createTopic(input: ${input}) { id } }`)).done.id;
}

/** Ann posts numbered messages. Returns their timestamps. */
async function post(topicId, count, word = "fire") {
  const timestamps = [];
  for (let start = 0; start < count; start += BATCH_SIZE) {
    const posts = Array.from({ length: Math.min(BATCH_SIZE, count - start) }, (_, k) => {
      const text = `${word} ${start + k}${" on the far hill".repeat((start + k) % 9)}`;
      return `m${k}: postMessage(input: {topicId: "${topicId}", text: "${text}"}) { timestamp }`;
    });
    const posted = await run(tokens.ann, `mutation { ${posts.join("\n")} }`);
    timestamps.push(...Object.values(posted).map(({ timestamp }) => timestamp));
  }
  return timestamps;
}

async function markRead(topicId, timestamp) {
  await run(tokens.ben, `mutation { markRead(topicId: "${topicId}", timestamp: "${timestamp}") { id } }`);
}

async function unreadCount(topicId) {
  return (await run(tokens.ben, `{ topic(id: "${topicId}") { unreadCount } }`)).topic.unreadCount;
}

/**
 * Waits until the line "New" is in view. Returns the message below it, whether that message is in view, and how many
 * messages are unread after a while.
 */
async function inspect(page, topicId) {
  await page.getByTestId("read-mark").waitFor();
  await page.waitForTimeout(READ_MARK_MS);
  const shown = await page.getByTestId("read-mark").evaluate((line) => {
    const box = line.closest('[data-testid="timeline"]').getBoundingClientRect();
    const row = line.parentElement.querySelector("[data-message]");
    const isInView = (element) => {
      const { top, bottom } = element.getBoundingClientRect();
      return top >= box.top - 1 && bottom <= box.bottom + 1;
    };
    const text = row.querySelector(".whitespace-pre-wrap").textContent.split(" ").slice(0, 2).join(" ");
    return { text, isInView: isInView(line) && isInView(row) };
  });
  return { ...shown, unread: await unreadCount(topicId) };
}

/** Scrolls down with the wheel. Returns how many messages are unread halfway and at the end. */
async function scrollToEnd(page, topicId) {
  await page.getByTestId("timeline").hover();
  await page.mouse.wheel(0, 300);
  await page.waitForTimeout(READ_MARK_MS);
  const halfway = await unreadCount(topicId);
  await page.mouse.wheel(0, 20_000);
  await page.waitForTimeout(READ_MARK_MS);
  return { halfway, end: await unreadCount(topicId) };
}

/** Ben leaves the topic, and returns to it after new messages. The cache still has the old read mark. */
async function openAgain(page, topicId) {
  await navigate(page, "/home");
  await page.getByRole("heading", { level: 1 }).waitFor();
  await post(topicId, 60, "smoke");
  await navigate(page, `/topic/${topicId}`);
  const opened = await inspect(page, topicId);
  await press(page, page.getByRole("button", { name: "Jump to latest" }));
  await page.locator("[data-message]").filter({ hasText: "smoke 59" }).waitFor();
  await page.waitForTimeout(READ_MARK_MS);
  return { ...opened, jumped: await unreadCount(topicId) };
}

/** Messages arrive while the tab is hidden. They stay unread, and the line stands above them when Ben returns. */
async function postWhileHidden(page, topicId) {
  await setVisibility(page, "hidden");
  await post(topicId, 45, "storm");
  await page.waitForTimeout(READ_MARK_MS);
  const hidden = await unreadCount(topicId);
  await setVisibility(page, "visible");
  return { hidden, ...(await inspect(page, topicId)) };
}

/** Runs in a headless browser, where every tab is visible otherwise. */
async function setVisibility(page, state) {
  await page.evaluate((value) => {
    Object.defineProperty(document, "visibilityState", { configurable: true, get: () => value });
    document.dispatchEvent(new Event("visibilitychange"));
  }, state);
}

/** Ben has read nothing of a topic that has more than one page. */
async function openNeverRead(page, community) {
  const topic = await createTopic(community, "Harbour");
  await post(topic, 75, "wave");
  await navigate(page, `/topic/${topic}`);
  await page.getByRole("heading", { name: "Harbour" }).waitFor();
  const opened = await inspect(page, topic);
  return { ...opened, button: await page.getByRole("button", { name: "Jump to latest" }).innerText() };
}

/** Starts a conversation with Ben. Returns its id. */
async function startConversation(token) {
  const { viewer } = await run(tokens.ben, "{ viewer { id } }");
  const start = `mutation { done: startConversation(input: {userIds: ["${viewer.id}"]}) { id } }`;
  return (await run(token, start)).done.id;
}

/**
 * Ben is on another screen while Ann writes to him, and Cat asks him. Returns the titles of the tab: with both, without
 * the muted conversation, and after he has unmuted it.
 */
async function countConversations(page, conversation) {
  await navigate(page, "/home");
  await page.waitForFunction(() => document.title === "Home · Noroshi");
  await post(conversation, 1, "hello");
  await showsCount(page, 1);
  const request = await startConversation(tokens.cat);
  const hello = `mutation { postMessage(input: {topicId: "${request}", text: "May I?"}) { id } }`;
  await run(tokens.cat, hello);
  await showsCount(page, 2);
  const titles = [await page.title()];
  await checkVariants(page, "unread-chat");
  await navigate(page, `/topic/${conversation}`);
  await toggleMute(page, "Notifications from Ann (muted)");
  await navigate(page, "/home");
  await post(conversation, 1, "anybody there?");
  await showsCount(page, 1);
  titles.push(await page.title());
  await navigate(page, `/topic/${conversation}`);
  await toggleMute(page, "Notifications from Ann");
  await navigate(page, "/home");
  await post(conversation, 1, "hello again");
  await showsCount(page, 2);
  titles.push(await page.title());
  return titles;
}

/** Mutes the conversation that is being opened, or ends that. Waits until the bell has the name. */
async function toggleMute(page, name) {
  await expectFocus(page, page.getByRole("textbox", { name: /^Message to/ }));
  await press(page, page.getByRole("button", { name: /^Notifications from Ann/ }));
  await press(page, page.getByRole("checkbox", { name: "Mute" }), "Space");
  await page.getByRole("button", { name, exact: true }).waitFor();
  await page.keyboard.press("Escape");
}

/** Waits until the navigation counts so many conversations. */
async function showsCount(page, count) {
  const link = page.getByRole("navigation", { name: "Screens" }).getByRole("link", { name: /^Chat/ });
  await link.filter({ hasText: `${count} unread` }).waitFor();
}

/** Ben opens a conversation from the list. */
async function openDirect(page, conversation) {
  const messages = await post(conversation, 40, "secret");
  await markRead(conversation, messages[14]);
  await navigate(page, "/chat");
  await press(
    page,
    page.getByRole("region", { name: "Direct messages" }).getByRole("link", { name: /^Ann/ }),
  );
  await page.getByRole("textbox", { name: "Message to Ann" }).waitFor();
  return await inspect(page, conversation);
}

/** Ben opens the newest message by its link. The messages that the link skips stay unread, and a button leads there. */
async function openByLink(page, community) {
  const topic = await createTopic(community, "Cave");
  const messages = await post(topic, 75, "echo");
  await markRead(topic, messages[0]);
  await navigate(page, `/topic/${topic}/${messages[74]}`);
  await page.locator("[data-message]").filter({ hasText: "echo 74" }).waitFor();
  const button = page.getByRole("button", { name: "74 unread messages above" });
  await button.waitFor();
  const unread = await unreadCount(topic);
  await checkVariants(page, "unread-above");
  await press(page, button);
  return { unread, shown: await inspect(page, topic) };
}
