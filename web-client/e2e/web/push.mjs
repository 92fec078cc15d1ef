/**
 * Offline notifications in a real Chromium, by keyboard alone. A browser is registered after a click, and its service
 * worker shows pushes and replaces repeated ones. A click on a push opens its screen. Settings are stored. Digests are
 * chosen, ended by the link of a mail, and chosen again. Prints a report as one line of JSON.
 *
 * The browser's own push service is not reachable in a test. So the page gets a subscription of the test, and Chromium's
 * developer tools deliver pushes to the real service worker.
 *
 * Standard input: {url, chromium, tokens: {ann, annWithAddress}, screenshots, subscription, unsubscribe}. Ann is a
 * member. `annWithAddress` is a token of hers with a verified mail address, and `unsubscribe` the link of her digests.
 */
import { loadAxe, navigate, readInput } from "../browser.mjs";
import { choose, expectFocus, press, tabTo } from "../keyboard.mjs";
import { openScreenChecker } from "../screen-checker.mjs";

const { tokens, subscription, unsubscribe, ...options } = readInput();
const { findings, run, open, checkScreen, checkVariants, close } = await openScreenChecker(options);
const SETTINGS = `{ pushDevices { id current }
  notificationSettings { ways { category push } levels { placeId level } quietHours { start end } language } }`;
const DIGEST = "{ notificationSettings { ways { category mail } digest digestAddress digestObstacle } }";

try {
  const create = 'mutation { done: createCommunity(input: { name: "Harbour" }) { id } }';
  const community = (await run(tokens.ann, create)).done.id;
  const page = await open(tokens.ann, "/notifications", { permissions: ["notifications"] });
  await page.evaluate(replaceSubscriptions, subscription);
  await navigate(page, "/notificationSettings");
  const button = page.getByRole("button", { name: "Turn on notifications in this browser" });
  await button.waitFor();
  const permissionBefore = await page.evaluate(() => globalThis.askedForPermission);
  await press(page, button);
  await page.getByText("This browser", { exact: true }).waitFor();
  await chooseSettings(page);
  const topic = await chooseTopicLevel(page, community);
  const report = { permissionBefore, stored: await run(tokens.ann, SETTINGS), community, topic };
  await chooseDigests(page);
  report.digest = (await run(tokens.ann, DIGEST)).notificationSettings;
  await checkVariants(page, "notification-settings");
  report.shown = await pushTwice(page);
  report.opened = await clickShown(page);
  report.left = await removeDevice(page);
  console.log(JSON.stringify({ ...report, ...findings }));
} finally {
  await close();
}

/** Runs in the page: subscribing gives the subscription of the test. Records whether the permission was asked for. */
function replaceSubscriptions(json) {
  let current = null;
  const subscription = {
    endpoint: json.endpoint,
    toJSON: () => json,
    unsubscribe: async () => {
      current = null;
      return true;
    },
  };
  PushManager.prototype.subscribe = async () => {
    current = subscription;
    return current;
  };
  PushManager.prototype.getSubscription = async () => current;
  const ask = Notification.requestPermission.bind(Notification);
  globalThis.askedForPermission = false;
  Notification.requestPermission = () => {
    globalThis.askedForPermission = true;
    return ask();
  };
}

/** Turns reactions and quiet hours on, and leaves only mentions of the community. */
async function chooseSettings(page) {
  const reactions = page.getByRole("checkbox", { name: "Reactions and reposts" });
  await press(page, reactions, "Space");
  await page.getByRole("checkbox", { name: "Reactions and reposts", checked: true }).waitFor();
  await press(page, page.getByRole("checkbox", { name: "Use quiet hours" }), "Space");
  await page.getByLabel("From", { exact: true }).waitFor();
  const stored = page.waitForResponse(
    (response) => response.request().postData()?.includes("SetCommunityNotifications") ?? false,
  );
  await choose(page, page.getByLabel("Harbour"), "Only mentions");
  await stored;
}

/** Chooses a level in the heading of a topic, whose community has one already. Returns the topic's id. */
async function chooseTopicLevel(page, community) {
  const create =
    'mutation ($id: ID!) { done: createTopic(input: { communityId: $id, title: "Quay" }) { id } }';
  const topic = (await run(tokens.ann, create, { id: community })).done.id;
  await navigate(page, `/topic/${topic}`);
  await press(page, page.getByRole("button", { name: "Notifications from Quay" }));
  const inherited = page.getByRole("radio", { name: "As the community (Only mentions)", checked: true });
  await tabTo(page, inherited);
  await checkVariants(page, "topic-notifications");
  const stored = page.waitForResponse(
    (response) => response.request().postData()?.includes("SetTopicNotifications") ?? false,
  );
  await page.keyboard.press("ArrowDown");
  await page.getByRole("radio", { name: "Everything", checked: true }).waitFor();
  await stored;
  await page.keyboard.press("Escape");
  await expectFocus(page, page.getByRole("button", { name: "Notifications from Quay" }));
  await navigate(page, "/notificationSettings");
  await page.getByLabel("Quay").waitFor();
  return topic;
}

/** Chooses digests: without a verified address, with one, and again after they were ended by the link of a mail. */
async function chooseDigests(page) {
  const period = page.getByLabel("Mails about unread notifications");
  await page.getByText("No mails are sent, because no verified mail address").waitFor();
  await run(tokens.annWithAddress, "{ viewer { id } }");
  await choose(page, period, "Daily at most");
  await page.getByText("Mails go to ann@example.org.").waitFor();
  const mailed = page.getByRole("region", { name: "What arrives by mail" });
  await press(page, mailed.getByRole("checkbox", { name: "New followers" }), "Space");
  await mailed.getByRole("checkbox", { name: "New followers", checked: true }).waitFor();
  await endByLink(await page.context().newPage());
  await navigate(page, "/notifications");
  await navigate(page, "/notificationSettings");
  await page.getByText("You have ended these mails by the link in a mail.").waitFor();
  await choose(page, period, "Weekly at most");
  await page.getByText("Mails go to ann@example.org.").waitFor();
}

/** Opens the link of a mail, and presses its button. */
async function endByLink(page) {
  await page.goto(unsubscribe);
  await loadAxe(page);
  await checkScreen(page, "unsubscribe");
  await press(page, page.getByRole("button", { name: "End these mails" }));
  await page.getByRole("heading", { name: "You get no more mails about unread notifications." }).waitFor();
  await page.close();
}

/** Delivers a push, repeats it, and delivers another one. Returns the titles that are shown. */
async function pushTwice(page) {
  const session = await page.context().newCDPSession(page);
  const registered = new Promise((resolve) => {
    session.on("ServiceWorker.workerRegistrationUpdated", ({ registrations }) => {
      const found = registrations.find(({ isDeleted }) => !isDeleted);
      if (found) resolve(found.registrationId);
    });
  });
  await session.send("ServiceWorker.enable");
  const registrationId = await registered;
  const content = { title: "bob mentioned you", body: "Look @ann", place: "#/notifications", tag: "a" };
  for (const tag of ["a", "a", "b"]) {
    const data = JSON.stringify({ ...content, tag });
    await session.send("ServiceWorker.deliverPushMessage", { origin: options.url, registrationId, data });
  }
  return await page.evaluate(async () => {
    const worker = await navigator.serviceWorker.ready;
    const until = performance.now() + 45_000;
    for (;;) {
      // Chromium forgets notifications that are listed before its display has them.
      await new Promise((resolve) => setTimeout(resolve, 1_000));
      const shown = await worker.getNotifications();
      if (shown.length >= 2) return shown.map(({ title, tag, body }) => [title, tag, body]).sort();
      if (performance.now() > until) throw new Error(`Shown: ${shown.map(({ tag }) => tag)}`);
    }
  });
}

/** Clicks a shown notification in the service worker. Returns the place that the page opens. */
async function clickShown(page) {
  const [worker] = page.context().serviceWorkers();
  await worker.evaluate(async () => {
    const [notification] = await self.registration.getNotifications({ tag: "a" });
    self.dispatchEvent(new NotificationEvent("notificationclick", { notification }));
  });
  await page.waitForFunction(() => location.hash === "#/notifications");
  await page.waitForFunction(async () => {
    const worker = await navigator.serviceWorker.ready;
    return (await worker.getNotifications({ tag: "a" })).length === 0;
  });
  return await page.evaluate(() => location.hash);
}

/** Removes the browser from the list. Returns how many devices are left. */
async function removeDevice(page) {
  await navigate(page, "/notificationSettings");
  await press(page, page.getByRole("button", { name: /^Remove / }));
  await page.getByRole("button", { name: "Turn on notifications in this browser" }).waitFor();
  return (await run(tokens.ann, SETTINGS)).pushDevices.length;
}
