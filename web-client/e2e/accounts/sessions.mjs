/**
 * Sign-in links and sign-outs in tabs of one Chromium window, by keyboard alone. Prints a report as one line of JSON.
 *
 * Standard input: {url, chromium, tokens: {ann, annRenewed, ben}, screenshots}. The exit code is 1 when a step timed
 * out.
 */
import { openTab, readInput } from "../browser.mjs";
import { expectFocus, press } from "../keyboard.mjs";
import { openScreenChecker } from "../screen-checker.mjs";

const { url, tokens, ...options } = readInput();
const { findings, open, checkVariants, close } = await openScreenChecker({ url, ...options });

try {
  const first = await open(tokens.ann, "/home");
  const report = {};
  report.invalidLink = await openInvalidLink(first);
  report.rejectedLink = await rejectLink(first);
  report.renewedBy = await openRenewedLink(first);
  report.graphiqlQuestion = await openGraphiqlLink(first.context());
  report.acceptedLink = await acceptLink(first);
  report.signOut = await signOutEverywhere(first);
  console.log(JSON.stringify({ ...report, ...findings }));
} finally {
  await close();
}

/** Opens a sign-in link in a page, as another website could. */
async function openLink(page, token) {
  await page.evaluate((text) => {
    location.hash = `token=${text}`;
  }, token);
}

/** Returns the handle of the page's user. */
async function signedInUser(page) {
  await press(page, page.getByRole("button", { name: "Account" }));
  const panel = page.getByRole("dialog", { name: "Account" });
  const text = await panel.getByRole("link").first().innerText();
  await page.keyboard.press("Escape");
  await panel.waitFor({ state: "detached" });
  return /@(\w+)/.exec(text)[1];
}

function question(page) {
  return page.getByRole("dialog", { name: /^Sign in as/ });
}

/** Returns the user after a link whose token the server rejects. */
async function openInvalidLink(page) {
  await openLink(page, "not.a.token");
  await page.getByText("This sign-in link is not valid").waitFor();
  return await signedInUser(page);
}

/** Opens Ben's link in Ann's tab and stays Ann. Returns the question, the address and the user. */
async function rejectLink(page) {
  await openLink(page, tokens.ben);
  await question(page).waitFor();
  await checkVariants(page, "link");
  const text = await question(page).innerText();
  const address = page.url();
  await expectFocus(page, page.getByRole("button", { name: "Stay signed in as Ann" }));
  await page.keyboard.press("Enter");
  await question(page).waitFor({ state: "detached" });
  return { text, address, user: await signedInUser(page) };
}

/** Opens a link with another token of the same user, which needs no question. Returns the user afterwards. */
async function openRenewedLink(page) {
  await openLink(page, tokens.annRenewed);
  await page.waitForFunction((token) => sessionStorage.getItem("noroshi.token") === token, tokens.annRenewed);
  await page.getByRole("navigation", { name: "Screens" }).waitFor();
  return await signedInUser(page);
}

/** Opens GraphiQL with Ben's link while Ann is signed in. Returns the question, which is answered with no. */
async function openGraphiqlLink(context) {
  const page = await context.newPage();
  const dialogMessage = new Promise((resolve) => {
    page.on("dialog", async (dialog) => {
      resolve(dialog.message());
      await dialog.dismiss();
    });
  });
  await page.goto(`${url}/graphiql#token=${tokens.ben}`);
  const text = await Promise.race([dialogMessage, page.waitForLoadState("networkidle").then(() => "")]);
  const isStored = await page.evaluate(
    (token) => JSON.stringify({ ...sessionStorage }).includes(token),
    tokens.ben,
  );
  await page.close();
  return { text, isStored };
}

/** Opens Ben's link in a new tab of Ann's window and accepts it. Returns the users of both tabs. */
async function acceptLink(first) {
  const page = await first.context().newPage();
  page.on("pageerror", (error) => findings.pageErrors.push(String(error)));
  await page.goto(`${url}/#token=${tokens.ben}`);
  await question(page).waitFor();
  await press(page, page.getByRole("button", { name: "Sign in as Ben", exact: true }));
  await page.getByRole("navigation", { name: "Screens" }).waitFor();
  return { own: await signedInUser(first), linked: await signedInUser(page) };
}

/**
 * Ann signs out in her first tab. Waits until her second tab, which has another token, is signed out. Returns how many
 * sockets the second tab has closed, and whether the first tab and a tab that had left the product are signed out. Also
 * returns the user of Ben's tab.
 */
async function signOutEverywhere(first) {
  const context = first.context();
  const [ben] = context.pages().slice(-1);
  const second = await context.newPage();
  const sockets = [];
  second.on("websocket", (socket) => sockets.push(socket));
  await second.goto(`${url}/#token=${tokens.ann}`);
  // The tab opens as Ben, who signed in last, and shows its screens for a moment before it asks.
  await press(second, question(second).getByRole("button", { name: "Sign in as Ann", exact: true }));
  await second.getByRole("navigation", { name: "Screens" }).waitFor();
  const away = await openTab(findings, context, url, tokens.ann, "/home");
  await away.goto("about:blank");
  await press(first, first.getByRole("button", { name: "Account" }));
  await press(first, first.getByRole("button", { name: "Sign out" }));
  await first.locator("#token").waitFor();
  await second.locator("#token").waitFor();
  for (const socket of sockets) if (!socket.isClosed()) await socket.waitForEvent("close");
  await away.goto(url);
  await away.locator("#token, nav").first().waitFor();
  await first.reload();
  await first.locator("#token, nav").first().waitFor();
  return {
    closedSockets: sockets.filter((socket) => socket.isClosed()).length,
    isFirstSignedOut: await first.locator("#token").isVisible(),
    isAwaySignedOut: await away.locator("#token").isVisible(),
    ben: await signedInUser(ben),
  };
}
