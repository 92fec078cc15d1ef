/**
 * Checks that drafts and unsent messages survive reloads, an expired token and a disconnect, and are shown to nobody
 * else. Prints a report as one line of JSON.
 *
 * Standard input: {url, chromium, tokens: {ann, admin, ben}}. The exit code is 1 when a step timed out.
 */
import { axeViolations, launch, navigate, openPage, openTab, readInput, runOperation } from "../browser.mjs";
import { startProxy } from "../proxy.mjs";
import { waitForAnimations } from "../screen-checker.mjs";

const MESSAGES = 45;
const BATCH_SIZE = 15;
const MESSAGE_MAX = 4_000;
const HOUR_MS = 3_600_000;

const { url, chromium, tokens } = readInput();
const proxy = await startProxy(new URL(url));
const session = await launch(chromium);
const violations = [];

try {
  const topicId = await createTopic();
  const ann = await openPage(session, proxy.url, tokens.ann, `/topic/${topicId}`);
  const report = {};
  report.distancesToEnd_px = await shrinkTimeline(ann);
  report.longText = await pasteLongText(ann, topicId);
  report.waiting = await reloadWithWaitingMessages(ann, topicId);
  const page = await openTab(session, ann.context(), proxy.url, tokens.ann, `/topic/${topicId}`);
  report.kept = await keepDrafts(page, topicId);
  report.scheduled = await scheduleLate(page);
  report.nextUser = await changeUser(page, topicId);
  report.seesConnectedAccounts = await openAsAdmin();
  const { requests, pageErrors } = session;
  console.log(JSON.stringify({ ...report, violations, requests, pageErrors, proxyUrl: proxy.url }));
} finally {
  await session.browser.close();
  proxy.close();
}

/** Creates a topic with enough messages to scroll. Returns its id. */
async function createTopic() {
  const run = (token, query) => runOperation(url, token, query);
  const { createCommunity } = await run(
    tokens.ann,
    'mutation { createCommunity(input: {name: "Hilltops"}) { id } }',
  );
  const communityId = createCommunity.id;
  await run(tokens.ben, `mutation { joinCommunity(communityId: "${communityId}") { id } }`);
  const input = `{communityId: "${communityId}", title: "Watch"}`;
  const { createTopic } = await run(tokens.ann, `mutation { createTopic(input: ${input}) { id } }`);
  for (let batch = 0; batch < MESSAGES; batch += BATCH_SIZE) {
    const posts = Array.from({ length: BATCH_SIZE }, (_, n) => {
      const text = `fire ${batch + n}`;
      return `m${n}: postMessage(input: {topicId: "${createTopic.id}", text: "${text}"}) { id }`;
    });
    await run(tokens.ann, `mutation { ${posts.join("\n")} }`);
  }
  return createTopic.id;
}

function messageField(page) {
  return page.getByRole("textbox", { name: "Message to Watch" });
}

/** Returns by how many pixels the timeline is away from its end, after the layout is done. */
async function distanceToEnd_px(page) {
  return await page.getByTestId("timeline").evaluate(async (box) => {
    for (let frames = 0; frames < 5; frames++) await new Promise(requestAnimationFrame);
    return Math.round(box.scrollHeight - box.scrollTop - box.clientHeight);
  });
}

/**
 * Takes space from the timeline: by a keyboard, then by a draft of six lines, then by a banner. Returns the distance to
 * the timeline's end in each case.
 */
async function shrinkTimeline(page) {
  await page.setViewportSize({ width: 360, height: 740 });
  await page
    .getByTestId("timeline")
    .getByText(`fire ${MESSAGES - 1}`)
    .waitFor();
  const distances = {};
  await page.setViewportSize({ width: 360, height: 420 });
  distances.keyboard = await distanceToEnd_px(page);
  distances.draft = 0;
  // Both changes may happen before the timeline has followed the first one.
  for (let n = 0; n < 10; n++) {
    await page.setViewportSize({ width: 360, height: 740 });
    await messageField(page).fill("one\ntwo\nthree\nfour\nfive\nsix");
    distances.draft = Math.max(distances.draft, await distanceToEnd_px(page));
    await messageField(page).fill("");
    await page.setViewportSize({ width: 360, height: 420 });
  }
  await page.setViewportSize({ width: 360, height: 740 });
  proxy.disconnect();
  await page.getByText("Reconnecting").waitFor();
  distances.banner = await distanceToEnd_px(page);
  proxy.reconnect();
  await page.getByText("Reconnecting").waitFor({ state: "detached" });
  return distances;
}

/**
 * Pastes a text that is too long, and presses Enter. Then shortens the text, and presses Enter again. Returns the
 * length in the field, whether the button to send was disabled, and whether the excess was shown. Also returns the
 * lengths of the long messages in the topic.
 */
async function pasteLongText(page, topicId) {
  const field = messageField(page);
  await field.focus();
  await page.keyboard.insertText("x".repeat(MESSAGE_MAX + 100));
  const length = (await field.inputValue()).length;
  const isDisabled = await page.getByRole("button", { name: "Send" }).isDisabled();
  const isExplained = await page.getByText("100 characters too long").isVisible();
  if (isExplained) violations.push(...(await axeViolations(page, "long")));
  await field.press("Enter");
  if (isDisabled) await field.fill("y".repeat(MESSAGE_MAX));
  await field.press("Enter");
  await page.waitForFunction(() => document.querySelector("form textarea").value === "");
  await page.locator("[data-pending]").waitFor({ state: "detached" });
  const sent = (await messages(topicId)).map(({ text }) => text.length).filter((each) => each > 100);
  return { length, isDisabled, isExplained, sent };
}

async function messages(topicId) {
  const query = `{ messages(topicId: "${topicId}", latest: "now") { items { text } } }`;
  return (await runOperation(url, tokens.ann, query)).messages.items;
}

/** Scrolls to the first message with the mouse wheel. */
async function scrollToStart(page) {
  const first = page.getByText("fire 0", { exact: true });
  await page.getByTestId("timeline").hover();
  for (let turns = 0; turns < MESSAGES && !(await first.isVisible()); turns++) {
    await page.mouse.wheel(0, -500);
    await page.evaluate(() => new Promise(requestAnimationFrame));
  }
  await first.waitFor();
}

/**
 * Scrolls up, writes two messages while disconnected, and leaves the page. Then two tabs are opened at the same time.
 * Returns how many of these messages each tab shows, and the texts of those that the server has stored.
 */
async function reloadWithWaitingMessages(page, topicId) {
  const texts = ["written in the dark", "and before dawn"];
  await scrollToStart(page);
  proxy.disconnect();
  for (const text of texts) {
    await messageField(page).fill(text);
    await messageField(page).press("Enter");
  }
  await page.locator('[data-pending="waiting"]').first().waitFor();
  await page.goto("about:blank");
  proxy.reconnect();
  const tabs = await Promise.all(
    [0, 1].map(() => openTab(session, page.context(), proxy.url, tokens.ann, `/topic/${topicId}`)),
  );
  const shown = [];
  for (const tab of tabs) {
    for (const text of texts) await tab.locator("[data-message]").filter({ hasText: text }).waitFor();
    await tab.locator("[data-pending]").waitFor({ state: "detached" });
    shown.push(
      await tab
        .locator("article")
        .filter({ hasText: /written in the dark|and before dawn/ })
        .count(),
    );
  }
  const stored = (await messages(topicId)).map(({ text }) => text).filter((text) => texts.includes(text));
  for (const tab of tabs) await tab.close();
  return { shown, stored: stored.toReversed() };
}

/**
 * Writes drafts of a message, a post and a scheduled post. Returns what their fields contain after a reload, and after
 * the token has become invalid and a new sign-in.
 */
async function keepDrafts(page, topicId) {
  await messageField(page).fill("half a message");
  await navigate(page, "/home");
  await page.getByRole("textbox", { name: "What’s happening?" }).fill("half a post");
  await navigate(page, "/publishing/list/today/new");
  await page.getByLabel("What do you want to say?").fill("half a plan");
  await closeComposer(page);
  await page.reload();
  const afterReload = await drafts(page, topicId);
  await page.evaluate(() => sessionStorage.setItem("noroshi.token", "an.expired.token"));
  await page.reload();
  await page.getByText("the token is not valid").waitFor();
  await page.evaluate((token) => {
    location.hash = `token=${token}`;
  }, tokens.ann);
  return { afterReload, afterSignIn: await drafts(page, topicId) };
}

/** Returns the texts of the three fields. */
async function drafts(page, topicId) {
  await page.getByRole("navigation", { name: "Screens" }).waitFor();
  await navigate(page, `/topic/${topicId}`);
  const message = await messageField(page).inputValue();
  await navigate(page, "/home");
  const post = await page.getByRole("textbox", { name: "What’s happening?" }).inputValue();
  await navigate(page, "/publishing/list/today/new");
  const scheduled = await page.getByLabel("What do you want to say?").inputValue();
  return [message, post, scheduled];
}

/**
 * Chooses past times. Returns for each whether it can be scheduled, and what the dialog says. Then discards the draft,
 * and returns the text of the next draft.
 */
async function scheduleLate(page) {
  const dialog = page.getByRole("dialog", { name: "Schedule a post" });
  const results = {};
  for (const [name, age_ms] of Object.entries({ minutes: HOUR_MS / 4, hours: 2 * HOUR_MS })) {
    const local = await page.evaluate((time) => {
      const date = new Date(time);
      return new Date(time - date.getTimezoneOffset() * 60_000).toISOString();
    }, Date.now() - age_ms);
    await dialog.getByLabel("Date").fill(local.slice(0, 10));
    await dialog.getByLabel("Time", { exact: true }).fill(local.slice(11, 16));
    const note = dialog.getByText(/This time/);
    await note.waitFor();
    const canSchedule = await dialog.getByRole("button", { name: "Schedule", exact: true }).isEnabled();
    results[name] = { note: await note.innerText(), canSchedule };
  }
  for (const [width, height] of [
    [1280, 800],
    [360, 740],
  ]) {
    await page.setViewportSize({ width, height });
    await waitForAnimations(page);
  }
  violations.push(...(await axeViolations(page, "late")));
  await dialog.getByRole("button", { name: "Discard draft" }).click();
  await navigate(page, "/publishing/list/today");
  await navigate(page, "/publishing/list/today/new");
  results.afterDiscard = await page.getByLabel("What do you want to say?").inputValue();
  await closeComposer(page);
  return results;
}

/**
 * Ben signs in in Ann's tab, then Ann signs in again and out. Returns the texts of the fields that Ben sees, and
 * whether Ann's texts are still in the browser's storage before and after her sign-out.
 */
async function changeUser(page, topicId) {
  await signInByLink(page, tokens.ben, "Ben");
  const draftsOfBen = await drafts(page, topicId);
  await closeComposer(page);
  await signInByLink(page, tokens.ann, "Ann");
  const isStored = () => page.evaluate(() => JSON.stringify({ ...localStorage }).includes("half a message"));
  const isStoredBeforeSignOut = await isStored();
  await page.getByRole("button", { name: "Account" }).click();
  await page.getByRole("button", { name: "Sign out" }).click();
  const question = page.getByRole("dialog", { name: "Sign out" });
  await question.waitFor();
  violations.push(...(await axeViolations(page, "sign-out")));
  await question.getByRole("button", { name: "Sign out" }).click();
  await page.locator("#token").waitFor();
  return { draftsOfBen, isStoredBeforeSignOut, isStoredAfterSignOut: await isStored() };
}

/**
 * Closes the composer of a scheduled post. The dialog disappears before the address changes, and the change would
 * replace a link that is opened between.
 */
async function closeComposer(page) {
  await page.keyboard.press("Escape");
  await page.waitForURL((address) => !address.hash.endsWith("/new"));
}

async function signInByLink(page, token, name) {
  await page.evaluate((text) => {
    location.hash = `token=${text}`;
  }, token);
  await page.getByRole("button", { name: `Sign in as ${name}`, exact: true }).click();
  await page.getByRole("dialog", { name: `Sign in as ${name}?` }).waitFor({ state: "detached" });
  await page.getByRole("navigation", { name: "Screens" }).waitFor();
}

/** Returns whether an administrator who schedules a post sees the button for connected accounts. */
async function openAsAdmin() {
  const page = await openPage(session, url, tokens.admin, "/publishing/list/today/new");
  const dialog = page.getByRole("dialog", { name: "Schedule a post" });
  await dialog.getByRole("button", { name: "Connect an account" }).waitFor();
  return await page.getByRole("button", { name: "Connected accounts" }).isVisible();
}
