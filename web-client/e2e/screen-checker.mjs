/** Checks screens in a browser: with axe in both themes, and their widths in windows from 360 to 2560 pixels. */
import { axeViolations, launch, openPage, overflow_px, runOperation } from "./browser.mjs";

const DEFAULT_SIZE = { width: 1400, height: 900 };
const EXTREME_SIZES = [
  { width: 2560, height: 1440 },
  { width: 360, height: 740 },
];

/** The theme differs, so that both are checked. */
const CHECKED_SIZES = [
  { width: 1280, height: 800, theme: "dark" },
  { width: 360, height: 740, theme: "light" },
];

/**
 * Starts a browser. `findings` collects the results of all checks, such as the screens that overflow their window.
 * `close` ends the browser.
 */
export async function openScreenChecker({ url, chromium, screenshots }) {
  const session = await launch(chromium);
  const findings = {
    requests: session.requests,
    pageErrors: session.pageErrors,
    violations: [],
    overflowingScreens: [],
  };

  /** Checks a screen and takes a screenshot. */
  async function checkScreen(page, name) {
    // The heading appears only after the screen's script has been loaded.
    await page.locator("h1").first().waitFor({ state: "attached" });
    for (const theme of ["dark", "light"])
      findings.violations.push(...(await axeViolations(page, name, theme)));
    await page.screenshot({ path: `${screenshots}/${name}.png` });
    for (const size of EXTREME_SIZES) {
      await page.setViewportSize(size);
      await waitForAnimations(page);
      const overflow = await overflow_px(page);
      if (overflow > 0) findings.overflowingScreens.push(`${name} at ${size.width}: ${overflow} px`);
    }
    await page.setViewportSize(DEFAULT_SIZE);
  }

  /** Checks a screen at 360 and 1280 pixels, and takes a screenshot of each. */
  async function checkBothSizes(page, name) {
    for (const { theme, ...size } of CHECKED_SIZES) {
      const sizedName = `${name}-${size.width}`;
      await page.setViewportSize(size);
      await waitForAnimations(page);
      findings.violations.push(...(await axeViolations(page, sizedName, theme)));
      const overflow = await overflow_px(page);
      if (overflow > 0) findings.overflowingScreens.push(`${sizedName}: ${overflow} px`);
      await page.screenshot({ path: `${screenshots}/${sizedName}.png` });
    }
    await page.setViewportSize(DEFAULT_SIZE);
  }

  return {
    browser: session.browser,
    findings,
    checkScreen,
    checkBothSizes,
    run: (token, query, variables) => runOperation(url, token, query, variables),
    open: (token, path, contextOptions) => openPage(session, url, token, path, contextOptions),
    close: () => session.browser.close(),
  };
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
