/**
 * Desktop notifications in a real Chromium: two hidden tabs of Ann get a message and mentions of Ben. Pushes replace
 * what the tabs have shown. Prints a report as one line of JSON.
 *
 * A headless browser has no hidden tabs, so the script changes `document.visibilityState`. Chromium's developer tools
 * deliver the pushes.
 *
 * Standard input: {url, chromium, tokens: {ann, ben}, screenshots}.
 */
import { navigate, openTab, readInput } from "../browser.mjs";
import { press } from "../keyboard.mjs";
import { openScreenChecker } from "../screen-checker.mjs";

const SWITCH = "Show notifications at once in this browser";

const { tokens, ...options } = readInput();
const { findings, run, open, checkVariants, close } = await openScreenChecker(options);
const QUIET = `mutation ($hours: QuietHoursInput) {
  done: setNotificationSettings(input: { quietHours: $hours }) { digest }
}`;
const LEVEL = `mutation ($id: ID!, $level: NotificationLevel) {
  done: setTopicNotifications(topicId: $id, level: $level) { digest }
}`;

try {
  const { topic, conversation } = await createPlaces();
  const first = await open(tokens.ann, "/notificationSettings", { permissions: ["notifications"] });
  await press(first, first.getByRole("checkbox", { name: SWITCH }), "Space");
  await first.getByRole("checkbox", { name: SWITCH, checked: true }).waitFor();
  await checkVariants(first, "desktop-settings");
  const second = await openTab(findings, first.context(), options.url, tokens.ann, "/home");
  await waitForNotifiers(first);
  for (const tab of [first, second]) await tab.evaluate(countShown);
  await postWhileVisible(first, second, conversation);
  await setVisibility(second, "hidden");
  await waitForNoVisibleTab(first);
  const mention = await post(topic, "**look** here, @ann");
  const direct = await post(conversation, "Are you there?");
  const report = { mention: `#/topic/${topic}/${mention}`, direct: `#/topic/${conversation}/${direct}` };
  report.shown = await shown(first, 2);
  report.pushed = await pushTheSame(first, report);
  await closeAll(first);
  const later = await mentionWhenWanted(first, topic);
  report.later = `#/topic/${topic}/${later}`;
  report.wanted = await shown(first, 1);
  report.calls = await Promise.all([first, second].map((tab) => tab.evaluate(() => globalThis.shownCount)));
  await navigate(first, `/topic/${topic}`);
  await setVisibility(first, "visible");
  report.left = (await shown(first, 0)).length;
  console.log(JSON.stringify({ ...report, ...findings }));
} finally {
  await close();
}

/** Creates a topic and a conversation of Ann and Ben. Returns the ids of their topics. */
async function createPlaces() {
  const create = 'mutation { done: createCommunity(input: {name: "Hilltops"}) { id } }';
  const community = (await run(tokens.ben, create)).done.id;
  await run(tokens.ann, `mutation { joinCommunity(communityId: "${community}") { id } }`);
  const createTopic = `mutation { done: createTopic(input: {communityId: "${community}", title: "Watch"}) { id } }`;
  const topic = (await run(tokens.ben, createTopic)).done.id;
  const { viewer } = await run(tokens.ann, "{ viewer { id } }");
  const start = `mutation { done: startConversation(input: {userIds: ["${viewer.id}"]}) { topic { id } } }`;
  return { topic, conversation: (await run(tokens.ben, start)).done.topic.id };
}

/** Ben posts a message. Returns its timestamp. */
async function post(topicId, text) {
  const input = `{topicId: "${topicId}", text: "${text}"}`;
  return (await run(tokens.ben, `mutation { done: postMessage(input: ${input}) { timestamp } }`)).done
    .timestamp;
}

/** Waits until the script that shows notifications runs in both tabs: one holds its lock, the other waits for it. */
async function waitForNotifiers(page) {
  await page.waitForFunction(async () => {
    const { held, pending } = await navigator.locks.query();
    const isNotifier = ({ name }) => name.startsWith("noroshi notifier");
    const visible = held.filter(({ name }) => name.startsWith("noroshi visible"));
    return held.some(isNotifier) && pending.some(isNotifier) && visible.length === 2;
  });
}

/** Waits until no tab holds the lock of visible tabs, which a tab releases a moment after it was hidden. */
async function waitForNoVisibleTab(page) {
  await page.waitForFunction(async () => {
    const { held } = await navigator.locks.query();
    return !held.some(({ name }) => name.startsWith("noroshi visible"));
  });
}

/** Runs in the page: counts the notifications that this tab shows. */
function countShown() {
  const show = ServiceWorkerRegistration.prototype.showNotification;
  globalThis.shownCount = 0;
  ServiceWorkerRegistration.prototype.showNotification = function (...parameters) {
    globalThis.shownCount += 1;
    return show.apply(this, parameters);
  };
}

/** The tab that shows notifications is hidden, and another tab is visible. Waits until both know of the message. */
async function postWhileVisible(first, second, conversation) {
  await setVisibility(first, "hidden");
  await post(conversation, "seen in the second tab");
  for (const tab of [first, second]) await tab.waitForFunction(() => document.title.startsWith("(1)"));
  // The activity of a conversation is announced once a second.
  await first.waitForTimeout(1_200);
}

async function setVisibility(page, state) {
  await page.evaluate((value) => {
    Object.defineProperty(document, "visibilityState", { configurable: true, get: () => value });
    document.dispatchEvent(new Event("visibilitychange"));
  }, state);
}

/** Waits until this many notifications are shown. Returns them in the order of their titles. Throws: Error. */
async function shown(page, count) {
  return await page.evaluate(async (count) => {
    const worker = await navigator.serviceWorker.ready;
    const until = performance.now() + 45_000;
    for (;;) {
      // Chromium forgets notifications that are listed before its display has them.
      await new Promise((resolve) => setTimeout(resolve, 1_000));
      const all = await worker.getNotifications();
      if (performance.now() > until)
        throw new Error(`Shown instead of ${count}: ${all.map(({ title }) => title)}`);
      if (all.length === count)
        return all
          .map(({ title, body, tag, silent, data }) => ({
            title,
            body,
            tag,
            silent: silent === true,
            keys: data.keys,
          }))
          .sort((a, b) => (a.title < b.title ? -1 : 1));
    }
  }, count);
}

/**
 * Delivers three pushes: of the direct message, of both that are shown, and of something new. Returns what is shown
 * after each.
 */
async function pushTheSame(page, { mention, direct }) {
  const deliver = await pusher(page);
  const tag = direct.slice(0, direct.lastIndexOf("/"));
  const results = [];
  await deliver({ title: "pushed", body: "", place: direct, tag, id: "a", keys: [direct] });
  results.push(await shownWith(page, "pushed", 2));
  const both = {
    title: "both",
    body: "",
    place: "#/notifications",
    tag: "b",
    id: "b",
    keys: [mention, direct],
  };
  await deliver(both);
  results.push(await shownWith(page, "both", 1));
  await deliver({ ...both, title: "more", tag: "c", id: "c", keys: [`${tag}/9999999999.000000`] });
  results.push(await shownWith(page, "more", 2));
  return results;
}

/** Returns a function that delivers a push to the page's service worker. */
async function pusher(page) {
  const devTools = await page.context().newCDPSession(page);
  const registered = new Promise((resolve) => {
    devTools.on("ServiceWorker.workerRegistrationUpdated", ({ registrations }) => {
      const found = registrations.find(({ isDeleted }) => !isDeleted);
      if (found) resolve(found.registrationId);
    });
  });
  await devTools.send("ServiceWorker.enable");
  const registrationId = await registered;
  return (content) =>
    devTools.send("ServiceWorker.deliverPushMessage", {
      origin: options.url,
      registrationId,
      data: JSON.stringify(content),
    });
}

/** Waits until a notification with this title is shown, among so many. Returns all. */
async function shownWith(page, title, count) {
  for (;;) {
    const all = await shown(page, count);
    if (all.some((each) => each.title === title)) return all;
  }
}

async function closeAll(page) {
  await page.evaluate(async () => {
    const worker = await navigator.serviceWorker.ready;
    for (const each of await worker.getNotifications()) each.close();
  });
  await shown(page, 0);
}

/**
 * Ben mentions Ann in her quiet hours, in a topic of which she wants nothing, and when she wants it. Returns the
 * timestamp of the last mention.
 */
async function mentionWhenWanted(page, topic) {
  const clock = (minutes) => new Date(Date.now() + minutes * 60_000).toISOString().slice(11, 16);
  await run(tokens.ann, QUIET, { hours: { start: clock(-10), end: clock(60), timeZone: "UTC" } });
  await mentionAndWait(page, topic, "quiet");
  await run(tokens.ann, QUIET, { hours: null });
  await run(tokens.ann, LEVEL, { id: topic, level: "NOTHING" });
  await mentionAndWait(page, topic, "nothing");
  await run(tokens.ann, LEVEL, { id: topic, level: null });
  return await mentionAndWait(page, topic, "wanted");
}

/** Waits until the tab has asked for the settings. */
async function mentionAndWait(page, topic, text) {
  const asked = page.waitForResponse(
    (response) => response.request().postData()?.includes("AlertRules") ?? false,
  );
  const timestamp = await post(topic, `${text} @ann`);
  await (await asked).finished();
  return timestamp;
}
