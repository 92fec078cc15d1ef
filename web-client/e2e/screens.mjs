/**
 * Checks the screens that every user may open: with axe in both themes, and their widths in windows from 360 to 2560
 * pixels.
 */
import { axeViolations, navigate, overflow_px } from "./browser.mjs";

const WINDOW_SIZES = [
  { width: 360, height: 740 },
  { width: 2560, height: 1440 },
  { width: 1400, height: 900 },
];

/**
 * Returns the `violations` that axe found, and the `overflowingScreens` that are wider than their window. Also returns
 * the width of the longest line of text at 2560 pixels. The user of `page` must have posts, notifications and reactions.
 */
export async function checkScreens(page, { topicId, personId, closedTopicId, screenshots }) {
  const findings = { violations: [], overflowingScreens: [], longestLine_px: 0 };
  const check = (name) => checkThemesAndWidths(page, name, screenshots, findings);
  for (const [path, content] of Object.entries({
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
    await navigate(page, path);
    await content.first().waitFor();
    await check(path.slice(1).replaceAll("/", "-"));
  }
  await checkDialogs(page, check);
  return findings;
}

/** Checks the dialogs that open over a screen. */
async function checkDialogs(page, check) {
  await navigate(page, "/chat");
  for (const opener of ["New community", "New topic in Hilltops", "Account"]) {
    await page.getByRole("button", { name: opener }).click();
    await page.getByRole("dialog").waitFor();
    await check(opener);
    await page.keyboard.press("Escape");
    await page.getByRole("dialog").waitFor({ state: "detached" });
  }
  await page.keyboard.press("Control+k");
  await page.getByRole("combobox").fill("watch");
  await page.getByRole("option", { name: /Watch/ }).first().waitFor();
  await check("palette");
  await page.keyboard.press("Enter");
  await page.locator("#topic-title").waitFor();
}

/** Checks the sign-in page. */
export async function checkSignIn(browser, url, screenshots) {
  const findings = { violations: [], overflowingScreens: [], longestLine_px: 0 };
  const context = await browser.newContext({ locale: "en-US" });
  const page = await context.newPage();
  await page.goto(url);
  await page.locator("footer").getByText("The server is ready").waitFor();
  await checkThemesAndWidths(page, "sign-in", screenshots, findings);
  await context.close();
  return findings;
}

/**
 * Checks a screen in both themes and in windows of all sizes. Adds the results to `findings`, and takes a screenshot if
 * axe has found violations.
 */
async function checkThemesAndWidths(page, name, screenshots, findings) {
  const violations = await axeViolations(page, name);
  findings.violations.push(...violations);
  if (violations.length > 0) await page.screenshot({ path: `${screenshots}/${name}.png` });
  for (const size of WINDOW_SIZES) {
    await page.setViewportSize(size);
    await waitForLayout(page);
    const overflow = await overflow_px(page);
    if (overflow > 0) findings.overflowingScreens.push(`${name} at ${size.width}: ${overflow} px`);
    if (size.width === 2560)
      findings.longestLine_px = Math.max(findings.longestLine_px, await longestLine_px(page));
  }
}

/** Waits for two animation frames, after which the layout for a new window size is done. */
async function waitForLayout(page) {
  await page.evaluate(async () => {
    for (let frames = 0; frames < 2; frames++) await new Promise(requestAnimationFrame);
  });
}

/** Returns the width of the longest line of text. */
async function longestLine_px(page) {
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
