/**
 * Sign-in and sign-out at an identity provider in one Chromium window, by keyboard alone on the product's pages. Prints
 * a report as one line of JSON.
 *
 * Standard input: {url, chromium, screenshots}.
 */
import { readInput, waitForSignIn } from "../browser.mjs";
import { press } from "../keyboard.mjs";
import { openScreenChecker } from "../screen-checker.mjs";

const { url, ...options } = readInput();
const { findings, openWindow, checkVariants, close } = await openScreenChecker({ url, ...options });
const report = {};

try {
  const first = await openWindow();
  await first.goto(`${url}/?signInFailure=DOMAIN#/chat`);
  await first.getByRole("alert").waitFor();
  report.failure = await first.getByRole("alert").innerText();
  await checkVariants(first, "sign-in");
  await signIn(first, "ann");
  await waitForSignIn(first);
  report.address = first.url();
  report.stored = await first.evaluate(() => JSON.stringify([localStorage, sessionStorage, document.cookie]));
  const second = await openTab(first.context(), url);
  await waitForSignIn(second);
  report.graphiql = await askInGraphiql(first.context());
  await signOut(first);
  await signInLink(second).waitFor();
  await signInLink(first).waitFor();
  await first.reload();
  await signInLink(first).waitFor();
  console.log(JSON.stringify({ ...report, ...findings }));
} finally {
  await close();
}

async function openTab(context, address) {
  const page = await context.newPage();
  page.on("pageerror", (error) => findings.pageErrors.push(String(error)));
  page.setDefaultTimeout(45_000);
  await page.goto(address);
  return page;
}

function signInLink(page) {
  return page.getByRole("link", { name: /Sign in with/ });
}

/** Signs in with the provider's development forms. */
async function signIn(page, login) {
  await press(page, signInLink(page));
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
    press(page, page.locator(".graphiql-execute-button")),
  ]);
  const answer = await response.json();
  await page.close();
  return answer;
}

/** Signs out, and confirms the sign-out at the provider. */
async function signOut(page) {
  await press(page, page.getByRole("button", { name: "Account" }));
  await press(page, page.getByRole("button", { name: "Sign out" }));
  await page.getByRole("button", { name: /Yes, sign me out/ }).click();
}
