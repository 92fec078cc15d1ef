/**
 * An operator schedules posts in a real Chromium window. Prints a report as one line of JSON.
 *
 * Standard input: {url, chromium, token, screenshots}. The exit code is 1 when a step timed out.
 */
import {
  axeViolations,
  launch,
  navigate,
  openPage,
  overflow_px,
  readInput,
  runOperation,
} from "../browser.mjs";

const { url, chromium, token, screenshots } = readInput();
const TIME_ZONE = "America/New_York";
const PNG = Buffer.from(
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==",
  "base64",
);
const session = await launch(chromium);
const run = (query, variables) => runOperation(url, token, query, variables);
const violations = [];

try {
  const topicId = await createTopic();
  const page = await openPage(session, url, token, "/publishing/month", { timezoneId: TIME_ZONE });
  const report = {};
  await checkThemes(page, "empty", page.getByText("No posts are scheduled for these days."));
  await connectAccount(page, "Playground", "Accepts every post");
  await connectAccount(page, "Forgetful", "Accepts posts, but its response is lost");
  report.scheduled = await schedulePost(page);
  report.dragged = await dragPost(page);
  report.moved = await movePostByKeyboard(page);
  report.cancelled = await cancelPost(page, report.moved.day);
  report.published = await publishPost(page, topicId);
  await checkViews(page, report.published.day);
  report.files = await publishFile(page, topicId);
  report.copied = await copyPost(page);
  report.picture = await publishPicture(page, "From a disk", uploadAndKeep);
  report.kept = await publishPicture(page, "From the library", addFromLibrary);
  report.media = await editPostWithMedia(page);
  report.overflows_px = await overflows_px(page);
  const { requests, pageErrors } = session;
  console.log(JSON.stringify({ ...report, violations, requests, pageErrors }));
} finally {
  await session.browser.close();
}

async function createTopic() {
  const community = await run('mutation { createCommunity(input: {name: "Hilltops"}) { id } }');
  const communityId = community.createCommunity.id;
  const mutation = `mutation { createTopic(input: {communityId: "${communityId}", title: "Watch"}) { id } }`;
  return (await run(mutation)).createTopic.id;
}

/** Waits until `content` is visible, checks both themes with axe, and takes a screenshot of violations. */
async function checkThemes(page, name, content) {
  await content.first().waitFor();
  const found = await axeViolations(page, name);
  violations.push(...found);
  if (found.length > 0) await page.screenshot({ path: `${screenshots}/publishing-${name}.png` });
}

/** Connects an account of the sandbox. `behaviour` says how the sandbox responds to posts. */
async function connectAccount(page, name, behaviour) {
  await page.getByRole("button", { name: "Connected accounts" }).click();
  const dialog = page.getByRole("dialog", { name: "Connected accounts" });
  await dialog.getByLabel("Display name").fill(name);
  await dialog.getByLabel("Behaviour").selectOption(behaviour);
  if (name === "Playground")
    await checkThemes(page, "accounts", dialog.getByText("The sandbox simulates a network"));
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

/** Returns the second Sunday of next year's March, when New York's clocks skip from 2:00 to 3:00. */
function dayWithoutTwoOClock() {
  const first = new Date(Date.UTC(new Date().getUTCFullYear() + 1, 2, 1));
  first.setUTCDate(8 + ((7 - first.getUTCDay()) % 7));
  return first.toISOString().slice(0, 10);
}

function chip(page, text) {
  return page.locator("main [data-scheduled]:visible").filter({ hasText: text });
}

/** Returns the scheduled post with this text. */
async function scheduledPost(text) {
  const { scheduledPosts } = await run(
    '{ scheduledPosts(latest: "now") { items { text dueAt timeZone state publications { state } } } }',
  );
  return scheduledPosts.items.find((each) => each.text === text);
}

/** Schedules a post for a day of the next month. The post must appear on that day. */
async function schedulePost(page) {
  const day = dayOfNextMonth(10);
  await navigate(page, `/publishing/month/${day}`);
  await page.getByRole("button", { name: "Schedule a post" }).click();
  const dialog = page.getByRole("dialog", { name: "Schedule a post" });
  await dialog.getByLabel("What do you want to say?").fill("Opening night");
  await dialog.getByLabel("Date").fill(day);
  await dialog.getByLabel("Time", { exact: true }).fill("19:30");
  await checkThemes(page, "composer", dialog);
  await dialog.getByRole("checkbox", { name: "Playground" }).check();
  await dialog.getByRole("button", { name: "Schedule", exact: true }).click();
  await page
    .locator(`[data-slot="${day}"]`)
    .getByRole("button", { name: /7:30 PM Opening night/ })
    .waitFor();
  const { dueAt, timeZone, publications } = await scheduledPost("Opening night");
  return { due: new Date(dueAt).toISOString(), day, timeZone, targets: publications.length };
}

/** Drags the post to another day. The time of day must not change. */
async function dragPost(page) {
  const day = dayOfNextMonth(16);
  const from = await chip(page, "Opening night").boundingBox();
  const to = await page.locator(`[data-slot="${day}"]`).boundingBox();
  await page.mouse.move(from.x + 20, from.y + 10);
  await page.mouse.down();
  await page.mouse.move(to.x + 30, to.y + 40, { steps: 8 });
  await page.mouse.up();
  await page.getByText("Moved to").waitFor();
  await page
    .locator(`[data-slot="${day}"]`)
    .getByRole("button", { name: /7:30 PM Opening night/ })
    .waitFor();
  return { due: new Date((await scheduledPost("Opening night")).dueAt).toISOString(), day };
}

/**
 * Moves the post by keyboard to a local time that the zone's clocks skip. The dialog offers two instants (readings) for
 * that time, and the second is chosen.
 */
async function movePostByKeyboard(page) {
  const day = dayWithoutTwoOClock();
  await chip(page, "Opening night").focus();
  await page.keyboard.press("m");
  const dialog = page.getByRole("dialog", { name: "Move" });
  await dialog.getByLabel("Date").fill(day);
  await dialog.getByLabel("Time", { exact: true }).fill("02:30");
  await page.keyboard.press("Enter");
  await checkThemes(page, "choice", dialog.getByRole("alert"));
  const offeredReadings = await dialog.getByRole("radio").count();
  await dialog.getByRole("radio").nth(1).check();
  await dialog.getByRole("button", { name: "Move" }).click();
  await dialog.waitFor({ state: "detached" });
  return { offeredReadings, day, due: new Date((await scheduledPost("Opening night")).dueAt).toISOString() };
}

/** Cancels the post. Returns its state. */
async function cancelPost(page, day) {
  await navigate(page, `/publishing/list/${day}`);
  await chip(page, "Opening night").click();
  const dialog = page.getByRole("dialog", { name: "Scheduled post" });
  await checkThemes(page, "details", dialog.getByRole("button", { name: "Cancel post" }));
  await dialog.getByRole("button", { name: "Cancel post" }).click();
  await page
    .getByRole("dialog", { name: "Cancel post" })
    .getByRole("button", { name: "Cancel post" })
    .click();
  await dialog.locator('[data-post-state="CANCELLED"]').waitFor();
  await dialog.getByRole("button", { name: "Close" }).click();
  await page.locator('main [data-state="CANCELLED"]').first().waitFor();
  return (await scheduledPost("Opening night")).state;
}

/**
 * Publishes a post that is due now to four targets. One account does not confirm the publication. The user has it
 * published again, and confirms it by hand when it is not confirmed again. Returns the number of confirmed publications
 * before that, what to check, the post's state and address after that, and the number of the topic's messages.
 */
async function publishPost(page, topicId) {
  await navigate(page, "/publishing/list/today/new");
  const dialog = page.getByRole("dialog", { name: "Schedule a post" });
  await dialog.getByLabel("What do you want to say?").fill("The beacon is lit");
  const local = minuteAgo();
  await dialog.getByLabel("Date").fill(local.slice(0, 10));
  await dialog.getByLabel("Time", { exact: true }).fill(local.slice(11, 16));
  for (const name of ["Watch", "Playground", "Forgetful"])
    await dialog.getByRole("checkbox", { name }).check();
  await dialog.getByText("The post is published immediately").waitFor();
  await dialog.getByRole("button", { name: "Schedule", exact: true }).click();
  await dialog.waitFor({ state: "detached" });
  await navigate(page, `/publishing/list/${local.slice(0, 10)}`);
  await page.locator('main [data-state="UNKNOWN"]:visible').first().waitFor();
  await chip(page, "The beacon is lit").click();
  const details = page.getByRole("dialog", { name: "Scheduled post" });
  await checkThemes(page, "unknown", details.getByRole("button", { name: "It is there", exact: true }));
  const publishedBefore = await details.locator('[data-publication="PUBLISHED"]').count();
  const check = await details.locator("dl").innerText();
  await details.getByRole("button", { name: "It is not there: publish again" }).click();
  await details.getByText("3 attempts").waitFor();
  await details.getByLabel("Address or ID of the post there").fill("https://forgetful.invalid/1");
  await details.getByRole("button", { name: "It is there", exact: true }).click();
  await details.locator('[data-post-state="PUBLISHED"]').waitFor();
  const address = await details.getByRole("link", { name: "View post" }).getAttribute("href");
  await details.getByRole("button", { name: "Close" }).click();
  const { messages } = await run(`{ messages(topicId: "${topicId}", latest: "now") { items { text } } }`);
  const stateAfter = (await scheduledPost("The beacon is lit")).state;
  const day = local.slice(0, 10);
  return { day, publishedBefore, stateAfter, messages: messages.items.length, check, address };
}

/** The instant one minute ago, as a local time in the zone of the page. */
function minuteAgo() {
  return new Date(Date.now() - 60_000).toLocaleString("sv-SE", { timeZone: TIME_ZONE }).replace(" ", "T");
}

/** Chooses a file in the composer, by default a text, and waits until it is uploaded. */
async function addFile(page, dialog, name, buffer = Buffer.from(`The text of ${name}`)) {
  const chooser = page.waitForEvent("filechooser");
  await dialog.getByRole("button", { name: "Add files" }).click();
  await (await chooser).setFiles([{ name, mimeType: "application/octet-stream", buffer }]);
  await dialog.locator("[data-composed=ready]").filter({ hasText: name }).waitFor();
}

/**
 * Schedules a post with a file, loads the page again before that, and replaces the file in the scheduled post. Then
 * publishes the post at once. Returns the names of the files after each of these steps.
 */
async function publishFile(page, topicId) {
  await navigate(page, "/publishing/list/today/new");
  const dialog = page.getByRole("dialog", { name: "Schedule a post" });
  await dialog.getByLabel("What do you want to say?").fill("Bring these");
  await dialog.getByRole("checkbox", { name: "Home feed" }).uncheck();
  await dialog.getByRole("checkbox", { name: "Watch" }).check();
  const day = dayOfNextMonth(20);
  await dialog.getByLabel("Date").fill(day);
  await addFile(page, dialog, "torches.txt");
  await page.reload();
  await dialog.locator("[data-composed=ready]").waitFor();
  await dialog.getByRole("checkbox", { name: "Playground" }).check();
  await dialog.getByRole("button", { name: "Schedule", exact: true }).click();
  await checkThemes(page, "files", dialog.getByText("File 1: a file of the type"));
  await dialog.getByRole("checkbox", { name: "Playground" }).uncheck();
  await dialog.getByRole("button", { name: "Schedule", exact: true }).click();
  await dialog.waitFor({ state: "detached" });
  const scheduled = await scheduledFiles();
  await navigate(page, `/publishing/list/${day}`);
  await chip(page, "Bring these").click();
  const details = page.getByRole("dialog", { name: "Scheduled post" });
  await checkThemes(page, "file-details", details.getByText("torches.txt"));
  await details.getByRole("button", { name: "Edit post" }).click();
  const editor = page.getByRole("dialog", { name: "Edit post" });
  await addFile(page, editor, "map.txt");
  await editor.getByRole("button", { name: "Remove torches.txt" }).click();
  const local = minuteAgo();
  await editor.getByLabel("Date").fill(local.slice(0, 10));
  await editor.getByLabel("Time", { exact: true }).fill(local.slice(11, 16));
  await editor.getByRole("button", { name: "Save" }).click();
  await editor.waitFor({ state: "detached" });
  const edited = await scheduledFiles();
  const topic = `{ messages(topicId: "${topicId}", latest: "now") { items { text attachments { name } } } }`;
  for (;;) {
    const message = (await run(topic)).messages.items.find(({ text }) => text === "Bring these");
    if (message) return { scheduled, edited, published: message.attachments.map(({ name }) => name) };
    await page.waitForTimeout(100);
  }
}

/** Schedules a copy of the published post with a file. Returns the files and the number of targets of the copy. */
async function copyPost(page) {
  await navigate(page, `/publishing/list/${minuteAgo().slice(0, 10)}`);
  await chip(page, "Bring these").click();
  await page
    .getByRole("dialog", { name: "Scheduled post" })
    .getByRole("button", { name: "Use again" })
    .click();
  const dialog = page.getByRole("dialog", { name: "Schedule a post" });
  await checkThemes(page, "copy", dialog.locator("[data-composed=ready]").filter({ hasText: "map.txt" }));
  await dialog.getByLabel("What do you want to say?").fill("Bring them again");
  await dialog.getByLabel("Date").fill(dayOfNextMonth(22));
  await dialog.getByRole("button", { name: "Schedule", exact: true }).click();
  await dialog.waitFor({ state: "detached" });
  const posts =
    '{ scheduledPosts(latest: "now") { items { text attachments { name } publications { id } } } }';
  const { scheduledPosts } = await run(posts);
  const { attachments, publications } = scheduledPosts.items.find(({ text }) => text === "Bring them again");
  // The library is empty again, as the next steps need it.
  const { mediaLibrary } = await run("{ mediaLibrary(limit: 10) { id } }");
  for (const { id } of mediaLibrary) await run(`mutation { removeFromLibrary(uploadId: "${id}") }`);
  return { files: attachments.map(({ name }) => name), targets: publications.length };
}

/** Adds a picture, and keeps it in the library. */
async function uploadAndKeep(page, dialog) {
  await addFile(page, dialog, "fire.png", PNG);
  await dialog.getByRole("textbox", { name: "Description of fire.png" }).fill("A fire on a hill");
  await dialog.getByRole("button", { name: "Your library" }).click();
  await dialog.getByText("Your library is empty.").waitFor();
  await dialog.getByRole("button", { name: "Keep this post's files" }).click();
  await checkThemes(page, "library", dialog.getByRole("region", { name: "Your library" }).locator("img"));
}

async function addFromLibrary(_page, dialog) {
  await dialog.getByRole("button", { name: "Your library" }).click();
  await dialog.getByRole("button", { name: "Add from your library: fire.png, A fire on a hill" }).click();
  await dialog.locator("[data-composed=ready]").waitFor();
}

/** Publishes a picture to an account at once. Returns the files and the publications of the post. */
async function publishPicture(page, text, addPicture) {
  await navigate(page, "/publishing/list/today/new");
  const dialog = page.getByRole("dialog", { name: "Schedule a post" });
  await dialog.getByLabel("What do you want to say?").fill(text);
  await addPicture(page, dialog);
  await dialog.getByRole("checkbox", { name: "Home feed" }).uncheck();
  await dialog.getByRole("checkbox", { name: "Playground" }).check();
  const local = minuteAgo();
  await dialog.getByLabel("Date").fill(local.slice(0, 10));
  await dialog.getByLabel("Time", { exact: true }).fill(local.slice(11, 16));
  await checkThemes(page, "picture", dialog.locator("[data-composed] img"));
  await dialog.getByRole("button", { name: "Schedule", exact: true }).click();
  await dialog.waitFor({ state: "detached" });
  const posts = "items { text state attachments { altText contentType } publications { state } }";
  for (;;) {
    const { scheduledPosts } = await run(`{ scheduledPosts(latest: "now") { ${posts} } }`);
    const post = scheduledPosts.items.find((each) => each.text === text);
    if (post?.state === "PUBLISHED") return post;
    await page.waitForTimeout(100);
  }
}

/** Edits the text of a post that a program has scheduled with the address of an image. Returns its media. */
async function editPostWithMedia(page) {
  const day = dayOfNextMonth(21);
  const media = [{ url: "https://pictures.invalid/fire.png", altText: "A fire", kind: "IMAGE" }];
  const input = { text: "From a program", media, toHomeFeed: true, dueAt: `${day}T12:00:00Z` };
  await run("mutation ($input: SchedulePostInput!) { schedulePost(input: $input) { id } }", { input });
  await navigate(page, `/publishing/list/${day}`);
  await chip(page, "From a program").click();
  await page.getByRole("dialog").getByRole("button", { name: "Edit post" }).click();
  const editor = page.getByRole("dialog", { name: "Edit post" });
  await checkThemes(page, "media", editor.getByLabel("Image or video URL"));
  await editor.getByLabel("What do you want to say?").fill("From a person");
  await editor.getByRole("button", { name: "Save" }).click();
  await editor.waitFor({ state: "detached" });
  const query = '{ scheduledPosts(latest: "now") { items { text media { url altText kind } } } }';
  const { scheduledPosts } = await run(query);
  return scheduledPosts.items.find(({ text }) => text === "From a person").media;
}

async function scheduledFiles() {
  const { scheduledPosts } = await run(
    '{ scheduledPosts(latest: "now") { items { text attachments { name } } } }',
  );
  const post = scheduledPosts.items.find(({ text }) => text === "Bring these");
  return post.attachments.map(({ name }) => name);
}

/** Checks the month with a day's dialog, the week and the list. */
async function checkViews(page, day) {
  await navigate(page, `/publishing/month/${day}`);
  await checkThemes(page, "month", chip(page, "The beacon is lit"));
  await page.locator(`[data-day="${day}"]`).click();
  const dialog = page.getByRole("dialog");
  await checkThemes(page, "day", dialog.locator("[data-scheduled]"));
  await page.keyboard.press("Escape");
  await navigate(page, "/publishing/week");
  await checkThemes(page, "week", page.getByRole("rowheader"));
  await navigate(page, `/publishing/list/${day}`);
  await checkThemes(page, "list", page.getByRole("heading", { level: 2 }));
}

/** Returns by how many pixels each view is wider than windows of 2560 and 360 pixels. */
async function overflows_px(page) {
  const overflows = [];
  for (const view of ["month", "week", "list", "list/today/new"]) {
    await navigate(page, `/publishing/${view}`);
    await page
      .getByRole(view.endsWith("new") ? "dialog" : "main")
      .first()
      .waitFor();
    for (const width of [2560, 360]) {
      await page.setViewportSize({ width, height: width === 360 ? 740 : 1440 });
      overflows.push(await overflow_px(page));
    }
  }
  return overflows;
}
