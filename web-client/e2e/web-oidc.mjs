/**
 * Sign-in and sign-out at an identity provider in one Chromium window. Prints a report as one line of JSON.
 *
 * Standard input: {url, chromium, screenshots}.
 */
import { axeViolations, launch, overflow_px, readInput } from "./browser.mjs";

const { url, chromium, screenshots } = readInput();
const session = await launch(chromium);
const report = { violations: [], overflows: [] };

try {
  const context = await session.browser.newContext({ locale: "en-US" });
  const first = await openTab(context, `${url}/?signInFailure=DOMAIN#/chat`);
  await first.getByRole("alert").waitFor();
  report.failure = await first.getByRole("alert").innerText();
  await screenshotAll(first);
  await signIn(first, "ann");
  await first.getByRole("navigation", { name: "Screens" }).waitFor();
  report.address = first.url();
  report.stored = await first.evaluate(() => JSON.stringify([localStorage, sessionStorage, document.cookie]));
  const second = await openTab(context, url);
  await second.getByRole("navigation", { name: "Screens" }).waitFor();
  report.graphiql = await askInGraphiql(context);
  await signOut(first);
  await second.getByRole("link", { name: /Sign in with/ }).waitFor();
  await first.getByRole("link", { name: /Sign in with/ }).waitFor();
  await first.reload();
  await first.getByRole("link", { name: /Sign in with/ }).waitFor();
  const { requests, pageErrors } = session;
  console.log(JSON.stringify({ ...report, requests, pageErrors }));
} finally {
  await session.browser.close();
}

async function openTab(context, address) {
  const page = await context.newPage();
  page.on("pageerror", (error) => session.pageErrors.push(String(error)));
  page.on("request", (request) => session.requests.push(request.url()));
  page.setDefaultTimeout(45_000);
  await page.goto(address);
  return page;
}

/** Takes screenshots of the sign-in screen in both languages, widths and themes, and checks it with axe. */
async function screenshotAll(page) {
  for (const [language, name] of [
    ["ja", "日本語"],
    ["en", "English"],
  ]) {
    await page.getByRole("button", { name }).click();
    for (const [width, height] of [
      [360, 740],
      [1280, 800],
    ]) {
      await page.setViewportSize({ width, height });
      for (const theme of ["dark", "light"]) {
        report.violations.push(...(await axeViolations(page, `sign-in ${language} ${width}`, theme)));
        await page.screenshot({ path: `${screenshots}/sign-in-${language}-${width}-${theme}.png` });
      }
      report.overflows.push(await overflow_px(page));
    }
  }
}

/** Signs in with the provider's development forms. */
async function signIn(page, login) {
  await page.getByRole("link", { name: /Sign in with/ }).click();
  await page.locator("input[name=login]").fill(login);
  await page.locator("input[name=password]").fill("any");
  await page.getByRole("button", { name: "Sign-in" }).click();
  await page.getByRole("button", { name: "Continue" }).click();
}

/** Returns the answer to a query that GraphiQL sends without a token. */
async function askInGraphiql(context) {
  const page = await openTab(context, `${url}/graphiql`);
  // The button does nothing until the editor has loaded.
  await page.getByRole("region", { name: "Operation Editor" }).locator(".view-line").first().waitFor();
  const [response] = await Promise.all([
    page.waitForResponse(
      (each) => each.url().endsWith("/graphql") && (each.request().postData() ?? "").includes('"WhoAmI"'),
    ),
    page.locator(".graphiql-execute-button").click(),
  ]);
  const answer = await response.json();
  await page.close();
  return answer;
}

/** Signs out, also at the provider, which asks. */
async function signOut(page) {
  await page.getByRole("button", { name: "Account" }).click();
  await page.getByRole("button", { name: "Sign out" }).click();
  await page.getByRole("button", { name: /Yes, sign me out/ }).click();
}
