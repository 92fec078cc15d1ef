/**
 * Sign-in links and sign-outs in tabs of one Chromium window. Prints a report as one line of JSON.
 *
 * Standard input: {url, chromium, tokens: {ann, annRenewed, ben}, screenshots}. The exit code is 1 when a step timed
 * out.
 */
import { axeViolations, launch, openPage, openTab, readInput } from "./browser.mjs";

const { url, chromium, tokens, screenshots } = readInput();
const session = await launch(chromium);
const violations = [];

try {
  const first = await openPage(session, url, tokens.ann, "/home");
  const report = {};
  report.invalidLink = await openInvalidLink(first);
  report.rejectedLink = await rejectLink(first);
  report.renewedBy = await openRenewedLink(first);
  report.graphiqlQuestion = await openGraphiqlLink(first.context());
  report.acceptedLink = await acceptLink(first);
  report.signOut = await signOutEverywhere(first);
  const { requests, pageErrors } = session;
  console.log(JSON.stringify({ ...report, violations, requests, pageErrors }));
} finally {
  await session.browser.close();
}

/** Opens a sign-in link in a page, as another website could. */
async function openLink(page, token) {
  await page.evaluate((text) => {
    location.hash = `token=${text}`;
  }, token);
}

/** Returns the handle of the page's user. */
async function signedInUser(page) {
  await page.getByRole("button", { name: "Account" }).click();
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
  for (const theme of ["dark", "light"]) violations.push(...(await axeViolations(page, "link", theme)));
  for (const [width, height] of [
    [360, 740],
    [1280, 800],
  ]) {
    await page.setViewportSize({ width, height });
    await page.screenshot({ path: `${screenshots}/link-${width}.png` });
  }
  const text = await question(page).innerText();
  const address = page.url();
  await page.getByRole("button", { name: "Stay signed in as Ann" }).click();
  await question(page).waitFor({ state: "detached" });
  return { text, address, user: await signedInUser(page) };
}

/** Opens another link of the same user, which needs no question. Returns the token that is used afterwards. */
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
  page.on("pageerror", (error) => session.pageErrors.push(String(error)));
  await page.goto(`${url}/#token=${tokens.ben}`);
  await question(page).waitFor();
  await page.getByRole("button", { name: "Sign in as Ben", exact: true }).click();
  await page.getByRole("navigation", { name: "Screens" }).waitFor();
  return { own: await signedInUser(first), linked: await signedInUser(page) };
}

/**
 * Ann signs out in her first tab. Waits until her second tab, whose token differs, is signed out. Returns how many sockets
 * the second tab has closed, whether the first tab and a tab that had left the product are signed out, and the user of
 * Ben's tab.
 */
async function signOutEverywhere(first) {
  const context = first.context();
  const [ben] = context.pages().slice(-1);
  const second = await context.newPage();
  const sockets = [];
  second.on("websocket", (socket) => sockets.push(socket));
  await second.goto(`${url}/#token=${tokens.ann}`);
  await question(second)
    .or(second.getByRole("navigation", { name: "Screens" }))
    .first()
    .waitFor();
  if (await question(second).isVisible())
    await second.getByRole("button", { name: "Sign in as Ann" }).click();
  await second.getByRole("navigation", { name: "Screens" }).waitFor();
  const away = await openTab(session, context, url, tokens.ann, "/home");
  await away.goto("about:blank");
  await first.getByRole("button", { name: "Account" }).click();
  await first.getByRole("button", { name: "Sign out" }).click();
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
