/**
 * Checks every screen that all users have with axe in both themes, and that it fits windows from 360 to 2560 pixels.
 */
import { axe, over_px, go as visit } from "./visitor.mjs";

const WINDOWS = [
  { width: 360, height: 740 },
  { width: 2560, height: 1440 },
  { width: 1400, height: 900 },
];

/**
 * Returns `violations` found by axe, `tooWide` windows, and `line_px`, the longest line of text at 2560 pixels. The
 * user of `page` has posts, notifications, reactions, and one community that they have not joined.
 */
export async function lookAtScreens(page, { topicId, personId, closedTopicId, screenshots }) {
  const seen = { violations: [], tooWide: [], line_px: 0 };
  const look = (name) => lookAt(page, name, screenshots, seen);
  for (const [place, shown] of Object.entries({
    [`/topic/${topicId}`]: page.locator("[data-message]"),
    [`/topic/${closedTopicId}`]: page.getByText("to read this topic"),
    "/chat": page.getByText("Choose a topic"),
    "/browse": page.getByRole("button", { name: "Join Valley" }),
    "/home": page.locator("[data-post]"),
    "/everyone": page.locator("[data-post]"),
    "/tag/dawn": page.locator("[data-post]"),
    "/notifications": page.locator("main time"),
    "/reactions": page.locator("main time"),
    [`/person/${personId}`]: page.locator("main h1"),
  })) {
    await visit(page, place);
    await shown.first().waitFor();
    await look(place.slice(1).replaceAll("/", "-"));
  }
  await dialogs(page, look);
  return seen;
}

/** Checks the dialogs that open over a screen. */
async function dialogs(page, look) {
  await visit(page, "/chat");
  for (const opener of ["New community", "New topic in Hilltops", "Account"]) {
    await page.getByRole("button", { name: opener }).click();
    await page.getByRole("dialog").waitFor();
    await look(opener);
    await page.keyboard.press("Escape");
    await page.getByRole("dialog").waitFor({ state: "detached" });
  }
  await page.keyboard.press("Control+k");
  await page.getByRole("combobox").fill("watch");
  await page.getByRole("option", { name: /Watch/ }).first().waitFor();
  await look("palette");
  await page.keyboard.press("Enter");
  await page.locator("#topic-title").waitFor();
}

/** Checks the sign-in page. */
export async function lookAtSignIn(browser, url, screenshots) {
  const seen = { violations: [], tooWide: [], line_px: 0 };
  const context = await browser.newContext({ locale: "en-US" });
  const page = await context.newPage();
  await page.goto(url);
  await page.locator("footer").getByText("The server is ready").waitFor();
  await lookAt(page, "sign-in", screenshots, seen);
  await context.close();
  return seen;
}

async function lookAt(page, name, screenshots, seen) {
  for (const theme of ["light", "dark"]) {
    seen.violations.push(...(await axe(page, name, theme)));
    await page.screenshot({ path: `${screenshots}/${name}-${theme}.png` });
  }
  for (const size of WINDOWS) {
    await page.setViewportSize(size);
    await laidOut(page);
    const over = await over_px(page);
    if (over > 0) seen.tooWide.push(`${name} at ${size.width}: ${over} px`);
    if (size.width === 2560) seen.line_px = Math.max(seen.line_px, await line_px(page));
  }
}

async function laidOut(page) {
  await page.evaluate(async () => {
    for (let frames = 0; frames < 2; frames++) await new Promise(requestAnimationFrame);
  });
}

/** Returns the width of the longest line of text. */
async function line_px(page) {
  return await page.evaluate(() => {
    const texts = document.createTreeWalker(document.querySelector("main"), NodeFilter.SHOW_TEXT);
    const range = document.createRange();
    let longest = 0;
    while (texts.nextNode()) {
      range.selectNodeContents(texts.currentNode);
      for (const { width } of range.getClientRects()) longest = Math.max(longest, width);
    }
    return Math.round(longest);
  });
}
