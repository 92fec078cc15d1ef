/**
 * A person connects an account in a real Chromium window, at the page of a Mastodon server. Prints a report as one line
 * of JSON.
 *
 * Standard input: {url, chromium, session, server, screenshots}. `session` is the token of an operator's session, and
 * `server` the address of the Mastodon server. The exit code is 1 when a step timed out.
 */
import { axeViolations, launch, openWindow, readInput, runInSession, waitForSignIn } from "../browser.mjs";

const { url, chromium, session: sessionToken, server } = readInput();
const session = await launch(chromium);
const violations = [];
const addresses = [];

try {
  const page = await openWindow(session);
  await signIn(page);
  await page.goto(`${url}/#/publishing`);
  await waitForSignIn(page);
  await page.getByRole("button", { name: "Connected accounts" }).click();
  await fillForm(page, "Harbour");
  const connected = await decide(page, "Allow access at Mastodon", "Authorize", "Harbour is connected");
  const first = await verifiedAt(page);
  violations.push(...(await axeViolations(page, "connected")));
  await fillForm(page, "Refused");
  const denied = await decide(page, "Allow access at Mastodon", "Deny", "Access was not allowed");
  violations.push(...(await axeViolations(page, "denied")));
  await page.getByRole("button", { name: "Replace the credentials of Harbour" }).click();
  const again = await decide(page, "Allow access again at Mastodon", "Authorize", "Harbour is connected");
  const report = { connected, denied, again, verifiedAt: [first, await verifiedAt(page)] };
  const { requests, pageErrors } = session;
  console.log(JSON.stringify({ ...report, addresses, violations, requests, pageErrors }));
} finally {
  await session.browser.close();
}

/** Adds the cookie of the session, with the attributes that the server gives it. */
async function signIn(page) {
  const { hostname } = new URL(url);
  const attributes = { domain: hostname, path: "/", secure: true, httpOnly: true, sameSite: "Lax" };
  await page.context().addCookies([{ name: "__Host-noroshi", value: sessionToken, ...attributes }]);
}

function accountsDialog(page) {
  return page.getByRole("dialog", { name: "Connected accounts" });
}

/** Describes an account of Mastodon in the form. */
async function fillForm(page, name) {
  const dialog = accountsDialog(page);
  await dialog.getByRole("combobox", { name: "Network" }).selectOption("Mastodon");
  await dialog.getByRole("textbox", { name: "Display name" }).fill(name);
  await dialog.getByRole("textbox", { name: /^URL/ }).fill(server);
}

/**
 * Goes to the server by a button of the page, and presses a button there. Waits until the server has sent the browser
 * back, and the dialog shows a notice with this text. Returns the notice and the accounts.
 */
async function decide(page, button, decision, text) {
  await page.getByRole("button", { name: button, exact: true }).click();
  await page.waitForURL(({ origin, pathname }) => `${origin}${pathname}` === `${server}/oauth/authorize`);
  await page.getByRole("button", { name: decision, exact: true }).click();
  const dialog = accountsDialog(page);
  const notice = dialog.locator("[role=status], [role=alert]").filter({ hasText: text });
  const found = { role: await notice.getAttribute("role"), text: await notice.innerText() };
  const rows = await dialog.locator("li[data-account]").evaluateAll((items) =>
    items.map((item) => {
      const [name, details] = item.innerText.split("\n");
      return [name, ...details.split(" · ").slice(0, 2)].join(" · ");
    }),
  );
  addresses.push(page.url());
  return { notice: found, rows };
}

/** Returns when the account's present credentials were verified, from the API. */
async function verifiedAt(page) {
  const { connectedAccounts } = await runInSession(page, "{ connectedAccounts { verifiedAt } }");
  return connectedAccounts[0].verifiedAt;
}
