/**
 * One part of what a person sees of a thread in a real Chromium: what stays when somebody else replies first, the page
 * on a narrow screen, the mute, the line "New", or a thread whose script can't be loaded. Prints a report as one line of
 * JSON.
 *
 * Standard input: {url, chromium, part, tokens: {ann, ben}, screenshots}. Ann writes by the API, and Ben reads.
 */
import { navigate, readInput } from "../browser.mjs";
import { actOnMessage, press, tabTo, type } from "../keyboard.mjs";
import { openScreenChecker } from "../screen-checker.mjs";
import { createTopic, field, message, post, texts, thread } from "../thread-topic.mjs";

/** More than a screen shows. */
const MANY = 30;
const PARTS = {
  draft: keepDraft,
  waiting: keepWaitingReply,
  page: openPage,
  mute: muteThread,
  unread: findUnread,
  topic: sendToTopic,
  script: openWithoutScript,
};

const { tokens, part, ...options } = readInput();
const { findings, run, open, checkVariants, close } = await openScreenChecker(options);

try {
  const topic = await createTopic(run, tokens.ann, tokens.ben);
  const report = await PARTS[part](topic);
  console.log(JSON.stringify({ ...report, ...findings }));
} finally {
  await close();
}

/** Posts a message of Ann, or her reply to a message. Returns it. */
function postAsAnn(topicId, text, replyTo = null) {
  return post(run, tokens.ann, { topicId, text, replyTo });
}

/** Ben opens the thread of a new message of Ann that has no replies. Returns his page and the message's id. */
async function startThread(topic, text) {
  const { id } = await postAsAnn(topic, text);
  const ben = await open(tokens.ben, `/topic/${topic}`);
  await actOnMessage(ben, text, "button", "Reply in thread");
  return { ben, id };
}

/** Keeps all messages of a page from the server until the returned function is called. */
async function holdMessages(page) {
  await page.route("**/graphql", (route) =>
    route.request().postData()?.includes("mutation PostMessage") ? route.abort() : route.fallback(),
  );
  return () => page.unroute("**/graphql");
}

/** Ben writes while Ann starts the thread. Returns his text then, which he has continued without a click, and later. */
async function keepDraft(topic) {
  const { ben, id } = await startThread(topic, "Who rows?");
  await type(ben, field(ben), "I row");
  await postAsAnn(topic, "Nobody", id);
  await message(thread(ben), "Nobody").waitFor();
  await ben.keyboard.type(" on Sunday");
  const continued = await field(ben).inputValue();
  await ben.reload();
  await message(thread(ben), "Nobody").waitFor();
  return { continued, reloaded: await field(ben).inputValue() };
}

/** Ben's first reply waits for the server while Ann starts the thread. Returns the replies that he sees at the end. */
async function keepWaitingReply(topic) {
  const { ben, id } = await startThread(topic, "Who steers?");
  const sendMessages = await holdMessages(ben);
  await type(ben, field(ben), "I steer");
  await ben.keyboard.press("Enter");
  const pending = thread(ben).locator('[data-pending="waiting"]').filter({ hasText: "I steer" });
  await pending.waitFor();
  await postAsAnn(topic, "Nobody steers", id);
  await message(thread(ben), "Nobody steers").waitFor();
  const waiting = await pending.count();
  await sendMessages();
  await message(thread(ben), "I steer").waitFor();
  await thread(ben).locator("[data-pending]").waitFor({ state: "detached" });
  return { waiting, replies: await texts(thread(ben).getByTestId("timeline")) };
}

/**
 * Ben sends a reply also to the topic while the server is away, and loads the page again. He opens the thread from the
 * topic, where the reply follows an edit and a deletion. Returns what he reads.
 */
async function sendToTopic(topic) {
  const { ben, id } = await startThread(topic, "Who steers?");
  const sendMessages = await holdMessages(ben);
  await type(ben, field(ben), "I steer");
  const choice = thread(ben).getByRole("checkbox", { name: "Also send to the topic" });
  await choice.focus();
  await ben.keyboard.press("Space");
  await checkVariants(ben, "thread-composer");
  await field(ben).focus();
  await ben.keyboard.press("Enter");
  await thread(ben).locator('[data-pending="waiting"]').waitFor();
  const report = { isReset: !(await choice.isChecked()) };
  await ben.reload();
  await sendMessages();
  const timeline = ben.getByTestId("timeline").first();
  const origin = timeline.getByTestId("thread-origin");
  await origin.waitFor();
  const reply = message(thread(ben), "I steer");
  await reply.waitFor();
  report.note = await reply.getByText("Also sent outside the thread").count();
  await press(ben, thread(ben).getByRole("button", { name: "Close thread" }));
  await thread(ben).waitFor({ state: "detached" });
  await checkVariants(ben, "cross-post");
  report.origin = await origin.innerText();
  report.messages = await texts(timeline);
  await press(ben, origin);
  await reply.waitFor();
  const [replyId, parent] = [
    await reply.getAttribute("data-message"),
    message(timeline, "Who steers?").first(),
  ];
  report.isParent = (await parent.getAttribute("data-message")) === id;
  await run(tokens.ben, 'mutation ($id: ID!) { editMessage(id: $id, text: "I row") { id } }', {
    id: replyId,
  });
  await message(timeline, "I row").waitFor();
  await run(tokens.ben, "mutation ($id: ID!) { deleteMessage(id: $id) { id } }", { id: replyId });
  await origin.waitFor({ state: "detached" });
  return report;
}

/** Posts numbered messages. Returns them. */
async function postMany(topicId, word, replyTo = null) {
  const posted = [];
  for (let number = 0; number < MANY; number++)
    posted.push(await postAsAnn(topicId, `${word} ${number}`, replyTo));
  return posted;
}

/** Ben reads a thread on a telephone, and goes back to the topic in two ways. */
async function openPage(topic) {
  const messages = await postMany(topic, "wave");
  const parent = messages[10];
  await postAsAnn(topic, "Splash", parent.id);
  const phone = { viewport: { width: 360, height: 740 }, hasTouch: true, isMobile: true };
  const ben = await open(tokens.ben, `/topic/${topic}/${messages[12].timestamp}`, phone);
  const timeline = ben.getByTestId("timeline").first();
  const link = ben.getByRole("button", { name: "1 reply" });
  await link.scrollIntoViewIfNeeded();
  const place = () => timeline.evaluate((box) => [location.hash, box.scrollTop]);
  const before = await place();
  await link.tap();
  await message(thread(ben), "Splash").waitFor();
  const report = {
    page: await measurePage(ben),
    hasAddress: ben.url().endsWith(encodeURIComponent(parent.id)),
  };
  await ben.goBack();
  await thread(ben).waitFor({ state: "detached" });
  report.isSamePlace = JSON.stringify(await place()) === JSON.stringify(before);
  report.focus = await ben.evaluate(() => document.activeElement.dataset.message);
  await ben.goForward();
  await thread(ben).getByRole("button", { name: "Back" }).tap();
  await thread(ben).waitFor({ state: "detached" });
  await ben.goForward();
  await message(thread(ben), "Splash").waitFor();
  await checkVariants(ben, "thread-page");
  await ben.setViewportSize({ width: 1280, height: 800 });
  await thread(ben).getByRole("button", { name: "Close thread" }).waitFor();
  const panel = await measurePage(ben);
  return { ...report, panel, parentId: parent.id };
}

/**
 * Ben opens a thread on a narrow screen while the server can't be reached for its script. Returns what has the focus
 * while it is loaded, after each of two tries, when it is there, and after Escape.
 */
async function openWithoutScript(topic) {
  const { id } = await postAsAnn(topic, "Who rows?");
  await postAsAnn(topic, "Nobody", id);
  const ben = await open(tokens.ben, `/topic/${topic}`, { viewport: { width: 360, height: 740 } });
  const script = await holdScript(ben);
  await press(ben, ben.getByRole("button", { name: "1 reply" }));
  await script.wait();
  await thread(ben).getByRole("status").waitFor();
  const report = { loading: await focused(ben) };
  await script.fail();
  const retry = thread(ben).getByRole("alert").getByRole("button", { name: "Try again" });
  await retry.waitFor();
  await checkVariants(ben, "thread-without-script");
  await ben.setViewportSize({ width: 360, height: 740 });
  await press(ben, retry);
  await script.wait();
  report.retrying = await focused(ben);
  await script.fail();
  await retry.waitFor();
  await script.release();
  await press(ben, retry);
  await message(thread(ben), "Nobody").waitFor();
  await tabTo(ben, field(ben));
  await ben.keyboard.press("Escape");
  await thread(ben).waitFor({ state: "detached" });
  return { ...report, closed: await focused(ben), parentId: id };
}

/** Holds the requests of the script of threads, until they fail or the script is released. */
async function holdScript(page) {
  const pattern = "**/thread-contents-*.js";
  const held = [];
  let onRequest = () => {};
  await page.route(pattern, (route) => {
    held.push(route);
    onRequest();
  });
  return {
    wait: () => held.length > 0 || new Promise((resolve) => (onRequest = resolve)),
    fail: () => Promise.all(held.splice(0).map((route) => route.abort("internetdisconnected"))),
    release: () => page.unroute(pattern),
  };
}

/** Returns the message that has the focus, or the text of another element that has it. */
function focused(page) {
  return page.evaluate(() => document.activeElement.dataset.message ?? document.activeElement.textContent);
}

/** Returns the parts of the page that the thread covers, and where the focus is. */
async function measurePage(page) {
  return await thread(page).evaluate((element) => {
    const box = (each) => JSON.stringify(each.getBoundingClientRect());
    const heading = element.querySelector("h1, h2");
    return {
      coversAll: box(element) === box(document.querySelector("main")),
      isTopicInert: document.querySelector('[data-testid="timeline"]').closest("[inert]") !== null,
      heading: heading.tagName,
      hasFocus: heading === document.activeElement,
      title: document.title,
    };
  });
}

/** Ben mutes a thread, leaves its community, and ends the mute in the list. Returns what he reads. */
async function muteThread(topic) {
  const { id } = await postAsAnn(topic, "Who rows on Sunday?");
  await postAsAnn(topic, "Nobody", id);
  const ben = await open(tokens.ben, `/topic/${topic}`);
  await press(ben, ben.getByRole("button", { name: "1 reply" }));
  await press(ben, thread(ben).getByRole("button", { name: "Mute Thread “Who rows on Sunday?”" }));
  await press(ben, ben.getByRole("button", { name: "Until I unmute" }));
  await thread(ben).getByRole("button", { name: "Unmute Thread “Who rows on Sunday?”" }).waitFor();
  await checkVariants(ben, "thread-muted");
  await navigate(ben, "/myData");
  const row = ben.locator("[data-mute]");
  await row.getByText("Rowers · Boats").waitFor();
  await checkVariants(ben, "mutes");
  const [name, place] = (await row.innerText()).split("\n").filter(Boolean);
  await press(ben, row.getByRole("link"));
  await thread(ben)
    .getByRole("button", { name: /^Unmute Thread/ })
    .waitFor();
  await leaveCommunity(topic);
  await navigate(ben, "/myData");
  await ben.reload();
  const unmute = row.getByRole("button", { name: "Unmute Replies to a message that you cannot see" });
  await unmute.waitFor();
  const left = await row.innerText();
  await press(ben, unmute);
  await row.waitFor({ state: "detached" });
  const { myMutes } = await run(tokens.ben, "{ myMutes { id } }");
  return { name, place, left: left.split("\n").filter(Boolean), myMutes };
}

/** Ben leaves the community of a topic. */
async function leaveCommunity(topicId) {
  const { topic } = await run(tokens.ben, `{ topic(id: "${topicId}") { community { id } } }`);
  const leave = "mutation ($id: ID!) { leaveCommunity(communityId: $id) { id } }";
  await run(tokens.ben, leave, { id: topic.community.id });
}

/** Ben opens a thread of which he has read a part, and looks away while it goes on. */
async function findUnread(topic) {
  const { id } = await postAsAnn(topic, "Who rows?");
  const replies = await postMany(topic, "stroke", id);
  const [{ topicId }] = replies;
  const mark = "mutation ($id: ID!, $at: Timestamp!) { markRead(topicId: $id, timestamp: $at) { id } }";
  await run(tokens.ben, mark, { id: topicId, at: replies[4].timestamp });
  const ben = await open(tokens.ben, `/topic/${topic}/latest/${id}`);
  const opened = await firstUnread(ben, "stroke");
  const unread = await unreadCount(topicId);
  await ben.getByTestId("timeline").last().hover();
  await ben.mouse.wheel(0, 20_000);
  while ((await unreadCount(topicId)) > 0) await ben.mouse.wheel(0, 20_000);
  await setVisibility(ben, "hidden");
  await postMany(topic, "storm", id);
  await message(thread(ben), `storm ${MANY - 1}`).waitFor();
  const missed = await unreadCount(topicId);
  await setVisibility(ben, "visible");
  return { opened, unread, missed, returned: await firstUnread(ben, "storm") };
}

async function unreadCount(topicId) {
  return (await run(tokens.ben, `{ topic(id: "${topicId}") { unreadCount } }`)).topic.unreadCount;
}

/** Waits until the line "New" of the thread is in view above a message with the word. Returns the message's text. */
async function firstUnread(page, word) {
  await page.waitForFunction((text) => {
    const line = document.querySelector('[data-testid="thread"] [data-testid="read-mark"]');
    if (!line?.parentElement.textContent.includes(text)) return false;
    const view = line.closest('[data-testid="timeline"]').getBoundingClientRect();
    const { top, bottom } = line.getBoundingClientRect();
    return top >= view.top - 1 && bottom <= view.bottom + 1;
  }, word);
  const row = thread(page).getByTestId("read-mark").locator("xpath=..");
  return await row.locator("p.whitespace-pre-wrap").innerText();
}

/** Runs in a headless browser, where every tab is visible otherwise. */
async function setVisibility(page, state) {
  await page.evaluate((value) => {
    Object.defineProperty(document, "visibilityState", { configurable: true, get: () => value });
    document.dispatchEvent(new Event("visibilitychange"));
  }, state);
}
