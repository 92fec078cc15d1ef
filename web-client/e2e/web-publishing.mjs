/**
 * An operator schedules posts in a real Chromium window; prints a report as one line of JSON.
 *
 * Standard input: {url, chromium, token, screenshots}. Exit code 1 when a step timed out.
 */
import { ask as askAt, axe, go, launch, open, over_px, readOrder } from "./visitor.mjs";

const { url, chromium, token, screenshots } = readOrder();
const ZONE = "America/New_York";
const visitors = await launch(chromium);
const ask = (query, variables) => askAt(url, token, query, variables);
const violations = [];

try {
  const topicId = await seed();
  const page = await open(visitors, url, token, "/publishing/month", { timezoneId: ZONE });
  const story = {};
  await look(page, "empty", page.getByText("No posts are scheduled for these days."));
  await connect(page, "Playground", "Accepts every post");
  await connect(page, "Forgetful", "Accepts posts, but its response is lost");
  story.scheduled = await schedule(page);
  story.dragged = await drag(page);
  story.choice = await moveByKeys(page);
  story.cancelled = await cancel(page, story.choice.day);
  story.out = await goesOut(page, topicId);
  await views(page, story.out.day);
  story.widths = await widths(page);
  const { requests, complaints } = visitors;
  console.log(JSON.stringify({ ...story, violations, requests, complaints }));
} finally {
  await visitors.browser.close();
}

async function seed() {
  const founded = await ask('mutation { createCommunity(input: {name: "Hilltops"}) { id } }');
  const communityId = founded.createCommunity.id;
  const made = `mutation { createTopic(input: {communityId: "${communityId}", title: "Watch"}) { id } }`;
  return (await ask(made)).createTopic.id;
}

/** Takes a screenshot once `shown` is visible, and checks both themes with axe. */
async function look(page, name, shown) {
  await shown.first().waitFor();
  for (const theme of ["dark", "light"]) violations.push(...(await axe(page, name, theme)));
  await page.screenshot({ path: `${screenshots}/publishing-${name}.png` });
}

async function connect(page, name, mood) {
  await page.getByRole("button", { name: "Connected accounts" }).click();
  const dialog = page.getByRole("dialog", { name: "Connected accounts" });
  await dialog.getByLabel("Display name").fill(name);
  await dialog.getByLabel("Behaviour").selectOption(mood);
  if (name === "Playground")
    await look(page, "accounts", dialog.getByText("The sandbox simulates a network"));
  await dialog.getByRole("button", { name: "Connect", exact: true }).click();
  await dialog.locator(`[data-account="${name}"]`).waitFor();
  await dialog.getByRole("button", { name: "Close" }).click();
}

/** Returns a day of the next month, which is in the future in every time zone. */
function dayOfNextMonth(number) {
  const now = new Date();
  const day = new Date(Date.UTC(now.getUTCFullYear(), now.getUTCMonth() + 1, number));
  return day.toISOString().slice(0, 10);
}

/** Returns the second Sunday of next year's March: New York's clocks skip the hour from two o'clock. */
function dayWithoutTwoOClock() {
  const first = new Date(Date.UTC(new Date().getUTCFullYear() + 1, 2, 1));
  first.setUTCDate(8 + ((7 - first.getUTCDay()) % 7));
  return first.toISOString().slice(0, 10);
}

function chip(page, text) {
  return page.locator("main [data-scheduled]").filter({ hasText: text });
}

async function post(text) {
  const { scheduledPosts } = await ask(
    '{ scheduledPosts(latest: "now") { items { text dueAt timeZone state publications { state } } } }',
  );
  return scheduledPosts.items.find((each) => each.text === text);
}

/** Writes a post in the composer for a day of the next month; it must appear on that day. */
async function schedule(page) {
  const day = dayOfNextMonth(10);
  await go(page, `/publishing/month/${day}`);
  await page.getByRole("button", { name: "Schedule a post" }).click();
  const dialog = page.getByRole("dialog", { name: "Schedule a post" });
  await dialog.getByLabel("What do you want to say?").fill("Opening night");
  await dialog.getByRole("button", { name: "Add an image or a video" }).click();
  await dialog.getByLabel("Image or video URL").fill("https://pictures.invalid/fire.png");
  await dialog.getByLabel("Date").fill(day);
  await dialog.getByLabel("Time", { exact: true }).fill("19:30");
  await dialog.getByRole("checkbox", { name: "Watch" }).check();
  await look(page, "composer", dialog);
  await dialog.getByRole("button", { name: "Schedule", exact: true }).click();
  // A topic accepts text only: the form shows the error and keeps the draft.
  await look(page, "refused", dialog.getByRole("alert"));
  await dialog.getByRole("checkbox", { name: "Watch" }).uncheck();
  await dialog.getByRole("checkbox", { name: "Playground" }).check();
  await dialog.getByRole("button", { name: "Schedule", exact: true }).click();
  await page
    .locator(`[data-slot="${day}"]`)
    .getByRole("button", { name: /7:30 PM Opening night/ })
    .waitFor();
  const { dueAt, timeZone, publications } = await post("Opening night");
  return { due: new Date(dueAt).toISOString(), day, timeZone, targets: publications.length };
}

/** Drags the post to another day; it keeps its time of day. */
async function drag(page) {
  const day = dayOfNextMonth(16);
  const from = await chip(page, "Opening night").boundingBox();
  const to = await page.locator(`[data-slot="${day}"]`).boundingBox();
  await page.mouse.move(from.x + 20, from.y + 10);
  await page.mouse.down();
  await page.mouse.move(to.x + 30, to.y + 40, { steps: 8 });
  await page.screenshot({ path: `${screenshots}/publishing-dragging.png` });
  await page.mouse.up();
  await page.getByText("Moved to").waitFor();
  await page
    .locator(`[data-slot="${day}"]`)
    .getByRole("button", { name: /7:30 PM Opening night/ })
    .waitFor();
  return { due: new Date((await post("Opening night")).dueAt).toISOString(), day };
}

/**
 * Moves the post by keyboard to a time that the zone's clocks skip: both readings are offered, and the chosen one is
 * kept.
 */
async function moveByKeys(page) {
  const day = dayWithoutTwoOClock();
  await chip(page, "Opening night").focus();
  await page.keyboard.press("m");
  const dialog = page.getByRole("dialog", { name: "Move" });
  await dialog.getByLabel("Date").fill(day);
  await dialog.getByLabel("Time", { exact: true }).fill("02:30");
  await page.keyboard.press("Enter");
  await look(page, "choice", dialog.getByRole("alert"));
  const offered = await dialog.getByRole("radio").count();
  await dialog.getByRole("radio").nth(1).check();
  await dialog.getByRole("button", { name: "Move" }).click();
  await dialog.waitFor({ state: "detached" });
  return { offered, day, due: new Date((await post("Opening night")).dueAt).toISOString() };
}

async function cancel(page, day) {
  await go(page, `/publishing/list/${day}`);
  await chip(page, "Opening night").click();
  const dialog = page.getByRole("dialog", { name: "Scheduled post" });
  await look(page, "details", dialog.getByRole("button", { name: "Cancel post" }));
  await dialog.getByRole("button", { name: "Cancel post" }).click();
  await page
    .getByRole("dialog", { name: "Cancel post" })
    .getByRole("button", { name: "Cancel post" })
    .click();
  await dialog.locator('[data-post-state="CANCELLED"]').waitFor();
  await dialog.getByRole("button", { name: "Close" }).click();
  await page.locator('main [data-state="CANCELLED"]').first().waitFor();
  return (await post("Opening night")).state;
}

/** Publishes a post that is due now, shows it without a reload, and resolves the unconfirmed publication manually. */
async function goesOut(page, topicId) {
  await go(page, "/publishing/list/today/new");
  const dialog = page.getByRole("dialog", { name: "Schedule a post" });
  await dialog.getByLabel("What do you want to say?").fill("The beacon is lit");
  const minuteAgo = new Date(Date.now() - 60_000);
  const local = minuteAgo.toLocaleString("sv-SE", { timeZone: ZONE }).replace(" ", "T");
  await dialog.getByLabel("Date").fill(local.slice(0, 10));
  await dialog.getByLabel("Time", { exact: true }).fill(local.slice(11, 16));
  for (const name of ["Watch", "Playground", "Forgetful"])
    await dialog.getByRole("checkbox", { name }).check();
  await dialog.getByText("The post is published immediately").waitFor();
  await dialog.getByRole("button", { name: "Schedule", exact: true }).click();
  await dialog.waitFor({ state: "detached" });
  await go(page, `/publishing/list/${local.slice(0, 10)}`);
  await page.locator('main [data-state="UNKNOWN"]').first().waitFor();
  await chip(page, "The beacon is lit").click();
  const shown = page.getByRole("dialog", { name: "Scheduled post" });
  await look(page, "unknown", shown.getByRole("button", { name: "It was published" }));
  const before = await shown.locator('[data-publication="PUBLISHED"]').count();
  await shown.getByRole("button", { name: "It was published" }).click();
  await shown.locator('[data-post-state="PUBLISHED"]').waitFor();
  await shown.getByRole("button", { name: "Close" }).click();
  const { messages } = await ask(`{ messages(topicId: "${topicId}", latest: "now") { items { text } } }`);
  const after = (await post("The beacon is lit")).state;
  return { day: local.slice(0, 10), before, after, messages: messages.items.length };
}

async function views(page, day) {
  await go(page, `/publishing/month/${day}`);
  await look(page, "month", chip(page, "The beacon is lit"));
  await page.locator(`[data-day="${day}"]`).click();
  const dialog = page.getByRole("dialog");
  await look(page, "day", dialog.locator("[data-scheduled]"));
  await page.keyboard.press("Escape");
  await go(page, "/publishing/week");
  await look(page, "week", page.getByRole("rowheader"));
  await go(page, `/publishing/list/${day}`);
  await look(page, "list", page.getByRole("heading", { level: 2 }));
}

/** Returns the pixels by which each view is wider than 360 and 2560 pixels. */
async function widths(page) {
  const over = [];
  for (const view of ["month", "week", "list", "list/today/new"]) {
    await go(page, `/publishing/${view}`);
    await page
      .getByRole(view.endsWith("new") ? "dialog" : "main")
      .first()
      .waitFor();
    for (const width of [2560, 360]) {
      await page.setViewportSize({ width, height: width === 360 ? 740 : 1440 });
      await page.screenshot({ path: `${screenshots}/publishing-${view.split("/").at(-1)}-${width}.png` });
      over.push(await over_px(page));
    }
  }
  return over;
}
