/** A browser session that checks screens with axe in both themes, and from 360 to 2560 pixels. */
import { ask as askAt, axe, launch, open as openAt, over_px } from "./visitor.mjs";

const WIDE = { width: 1400, height: 900 };
const EXTREMES = [
  { width: 2560, height: 1440 },
  { width: 360, height: 740 },
];

/** `seen` collects the findings; `close` ends the browser. */
export async function beginLooking({ url, chromium, screenshots }) {
  const visitors = await launch(chromium);
  const seen = { requests: visitors.requests, complaints: visitors.complaints, violations: [], tooWide: [] };

  async function look(page, name) {
    // Screens load in parts: wait for the heading.
    await page.locator("h1").first().waitFor({ state: "attached" });
    for (const theme of ["dark", "light"]) seen.violations.push(...(await axe(page, name, theme)));
    await page.screenshot({ path: `${screenshots}/${name}.png` });
    for (const size of EXTREMES) {
      await page.setViewportSize(size);
      await settled(page);
      const over = await over_px(page);
      if (over > 0) seen.tooWide.push(`${name} at ${size.width}: ${over} px`);
    }
    await page.setViewportSize(WIDE);
  }

  return {
    browser: visitors.browser,
    seen,
    look,
    ask: (token, query, variables) => askAt(url, token, query, variables),
    open: (token, place, more) => openAt(visitors, url, token, place, more),
    close: () => visitors.browser.close(),
  };
}

/** Waits until the layout and finite animations have settled. */
export async function settled(page) {
  await page.evaluate(async () => {
    const frame = () => new Promise(requestAnimationFrame);
    await frame();
    await frame();
    const ending = document.getAnimations().filter(({ effect }) => effect.getTiming().iterations === 1);
    await Promise.all(ending.map((each) => each.finished.catch(() => {})));
  });
}
