/**
 * The viewer's own data in a real Chromium: the browsers in which the viewer is signed in. Prints a report as one line
 * of JSON.
 *
 * Standard input: {url, chromium, tokens: {ann}, screenshots}. Ann has three sessions.
 */
import { readInput } from "./browser.mjs";
import { openScreenChecker } from "./screen-checker.mjs";

const { tokens, ...options } = readInput();
const { findings, run, open, checkBothSizes, close } = await openScreenChecker(options);

try {
  const japanese = await open(tokens.ann, "/myData", { locale: "ja-JP" });
  await sessions(japanese).nth(2).waitFor();
  await checkBothSizes(japanese, "my-data-ja");
  const page = await open(tokens.ann, "/home");
  await page.getByRole("button", { name: "Account" }).press("Enter");
  await page.getByRole("link", { name: "My data" }).press("Enter");
  await sessions(page).nth(2).waitFor();
  const text = await sessions(page).first().innerText();
  await checkBothSizes(page, "my-data");
  const counts = [await remaining()];
  await sessions(page)
    .first()
    .getByRole("button", { name: /^Sign out/ })
    .press("Enter");
  await sessions(page).nth(2).waitFor({ state: "detached" });
  counts.push(await remaining());
  await page.getByRole("button", { name: "Sign out everywhere else" }).press("Enter");
  await page.getByRole("dialog").getByRole("button", { name: "Sign out", exact: true }).click();
  await page.getByText("No signed-in browsers").waitFor();
  counts.push(await remaining());
  console.log(JSON.stringify({ text, counts, ...findings }));
} finally {
  await close();
}

function sessions(page) {
  return page.locator("[data-session]");
}

/** Returns the number of sessions that the API lists. */
async function remaining() {
  return (await run(tokens.ann, "{ mySessions { id } }")).mySessions.length;
}
