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

/** Rules of axe whose result depends on the theme and the width. The other rules depend on the elements alone. */
const VISUAL_RULES = ["color-contrast", "target-size", "scrollable-region-focusable"];

/**
 * Pairwise combinations: any two of language, theme and width occur in all their combinations. All rules of axe run
 * once for each language and width; the rules about colours and sizes run for every variant.
 */
const VARIANTS = [
  { language: "en", theme: "dark", width: 1280, height: 800 },
  { language: "en", theme: "light", width: 360, height: 740, rules: VISUAL_RULES },
  { language: "ja", theme: "light", width: 1280, height: 800, rules: VISUAL_RULES },
  { language: "ja", theme: "dark", width: 360, height: 740 },
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

  /** Checks a page with axe, records the violations, and takes a screenshot if there are any. */
  async function runAxe(page, name, theme) {
    const violations = await axeViolations(page, name, theme);
    findings.violations.push(...violations);
    if (allScreenshots || violations.length > 0) await takeScreenshot(page, `${name}-${theme}`);
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
    for (const theme of ["dark", "light"]) await runAxe(page, name, theme);
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
    for (const { language, theme, rules = null, ...size } of VARIANTS) {
      const variantName = `${name}-${language}-${size.width}-${theme}`;
      await page.setViewportSize(size);
      await page.emulateMedia({ colorScheme: theme, reducedMotion: "reduce" });
      const { violations, overflow } = await page.evaluate(inspect, { language, rules });
      findings.violations.push(...violations.map((text) => `${variantName} ${text}`));
      if (overflow > 0) findings.overflowingScreens.push(`${variantName}: ${overflow} px`);
      if (allScreenshots || violations.length > 0 || overflow > 0) await takeScreenshot(page, variantName);
    }
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
 * Runs in the page: changes the language, and returns the violations that axe finds and by how many pixels the page is
 * too wide. One function, because each call from outside costs as much time as a check.
 */
async function inspect({ language, rules }) {
  localStorage.setItem("noroshi.language", language);
  dispatchEvent(new StorageEvent("storage", { key: "noroshi.language", newValue: language }));
  const frame = () => new Promise(requestAnimationFrame);
  // The texts of a language are loaded when they are needed first.
  while (document.documentElement.lang !== language) await frame();
  await frame();
  await frame();
  const finite = document.getAnimations().filter(({ effect }) => effect.getTiming().iterations === 1);
  await Promise.all(finite.map((animation) => animation.finished.catch(() => {})));
  const options = { resultTypes: ["violations"], ...(rules && { runOnly: rules }) };
  const { violations } = await globalThis.axe.run(document, options);
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
