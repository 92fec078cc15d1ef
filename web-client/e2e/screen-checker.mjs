/** Checks screens in a browser: with axe, and their widths in windows from 360 to 2560 pixels. */
import {
  axeViolations,
  launch,
  loadAxe,
  openPage,
  openWindow,
  overflow_px,
  runOperation,
} from "./browser.mjs";

const DEFAULT_SIZE = { width: 1400, height: 900 };
const EXTREME_SIZES = [
  { width: 2560, height: 1440 },
  { width: 360, height: 740 },
];

const WIDE = { width: 1280, height: 800 };
const NARROW = { width: 360, height: 740 };

/**
 * Widths are measured in both languages in the narrow window, and in one in the wide window. Axe checks each screen in
 * the variants with a theme: each language, theme and size occurs. The themes alternate from screen to screen, so that
 * what all screens share, such as the navigation, is checked in both themes at both sizes.
 */
const VARIANTS = [
  { language: "en", size: WIDE, themes: ["dark", "light"] },
  { language: "en", size: NARROW },
  { language: "ja", size: NARROW, themes: ["light", "dark"] },
];

/**
 * Starts a browser. `findings` collects the results of all checks, such as the screens that overflow their window.
 * `screenshots` is the folder for screenshots of the screens with findings; with `allScreenshots`, of all checked
 * screens. `close` ends the browser.
 */
export async function openScreenChecker({ url, chromium, screenshots, allScreenshots = false }) {
  const session = await launch(chromium);
  const findings = {
    requests: session.requests,
    pageErrors: session.pageErrors,
    violations: [],
    overflowingScreens: [],
  };

  let checkedScreens = 0;
  /**
   * For each page, the addresses of screens that axe has checked as a whole. After that, it checks only the dialogs over
   * them, since a modal dialog makes the rest of a page inert.
   */
  const checkedAddresses = new WeakMap();

  /** Checks a page with axe, records the violations, and takes a screenshot if there are any. */
  async function runAxe(page, name) {
    const violations = await axeViolations(page, name);
    findings.violations.push(...violations);
    if (allScreenshots || violations.length > 0) await takeScreenshot(page, name);
  }

  async function measureWidth(page, name) {
    const overflow = await overflow_px(page);
    if (overflow <= 0) return;
    findings.overflowingScreens.push(`${name}: ${overflow} px`);
    await takeScreenshot(page, `${name}-overflow`);
  }

  async function takeScreenshot(page, name) {
    await page.screenshot({ path: `${screenshots}/${name}.png` });
  }

  /** Checks a screen in both themes, and in the smallest and the largest window. */
  async function checkScreen(page, name) {
    // The heading appears only after the screen's script has been loaded.
    await page.locator("h1").first().waitFor({ state: "attached" });
    await runAxe(page, name);
    for (const size of EXTREME_SIZES) {
      await page.setViewportSize(size);
      await waitForAnimations(page);
      await measureWidth(page, `${name}-${size.width}`);
    }
    await page.setViewportSize(DEFAULT_SIZE);
  }

  /** Checks a screen at 360 and 1280 pixels, in both languages and both themes. An open dialog stays open. */
  async function checkVariants(page, name) {
    await loadAxe(page);
    const ownLanguage = await page.evaluate(() => document.documentElement.lang);
    const addresses = checkedAddresses.get(page) ?? new Set();
    const onlyDialog = addresses.has(page.url());
    checkedAddresses.set(page, addresses.add(page.url()));
    for (const { language, size, themes } of VARIANTS) {
      const theme = themes?.[checkedScreens % 2];
      const variantName = [name, language, size.width, ...(theme ? [theme] : [])].join("-");
      await page.setViewportSize(size);
      if (theme) await page.emulateMedia({ colorScheme: theme, reducedMotion: "reduce" });
      const { violations, overflow } = await page.evaluate(inspect, {
        language,
        usesAxe: Boolean(theme),
        onlyDialog,
      });
      findings.violations.push(...violations.map((text) => `${variantName} ${text}`));
      if (overflow > 0) findings.overflowingScreens.push(`${variantName}: ${overflow} px`);
      if (allScreenshots || violations.length > 0 || overflow > 0) await takeScreenshot(page, variantName);
    }
    checkedScreens++;
    await chooseLanguage(page, ownLanguage);
    await page.setViewportSize(DEFAULT_SIZE);
  }

  return {
    browser: session.browser,
    findings,
    checkScreen,
    checkVariants,
    run: (token, query, variables) => runOperation(url, token, query, variables),
    open: (token, path, contextOptions) => openPage(session, url, token, path, contextOptions),
    openWindow: (locale) => openWindow(session, locale),
    close: () => session.browser.close(),
  };
}

/**
 * Runs in the page: changes the language, and returns the violations that axe finds, if it is used, and by how many
 * pixels the page is too wide. With `onlyDialog`, axe checks only the open modal dialog, if there is one. One function,
 * because each call from outside costs as much time as a check.
 */
async function inspect({ language, usesAxe, onlyDialog }) {
  localStorage.setItem("noroshi.language", language);
  dispatchEvent(new StorageEvent("storage", { key: "noroshi.language", newValue: language }));
  const frame = () => new Promise(requestAnimationFrame);
  // The texts of a language are loaded when they are needed first.
  while (document.documentElement.lang !== language) await frame();
  await frame();
  await frame();
  const finite = document.getAnimations().filter(({ effect }) => effect.getTiming().iterations === 1);
  await Promise.all(finite.map((animation) => animation.finished.catch(() => {})));
  const checked = (onlyDialog && document.querySelector("dialog:modal")) || document;
  const options = { resultTypes: ["violations"] };
  const { violations } = usesAxe ? await globalThis.axe.run(checked, options) : { violations: [] };
  return {
    violations: violations.map(({ id, nodes }) => `${id}: ${nodes[0].html} ${nodes[0].failureSummary}`),
    overflow: document.documentElement.scrollWidth - innerWidth,
  };
}

/** Changes the language as another tab would, so that nothing on the page is loaded again. */
export async function chooseLanguage(page, language) {
  await page.evaluate((newValue) => {
    localStorage.setItem("noroshi.language", newValue);
    dispatchEvent(new StorageEvent("storage", { key: "noroshi.language", newValue }));
  }, language);
  await page.locator(`html[lang="${language}"]`).waitFor({ state: "attached" });
}

/** Waits until the layout is done and finite animations have ended. */
export async function waitForAnimations(page) {
  await page.evaluate(async () => {
    const frame = () => new Promise(requestAnimationFrame);
    await frame();
    await frame();
    const finite = document.getAnimations().filter(({ effect }) => effect.getTiming().iterations === 1);
    await Promise.all(finite.map((animation) => animation.finished.catch(() => {})));
  });
}
