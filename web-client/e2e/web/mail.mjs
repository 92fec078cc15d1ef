/**
 * The address book in a real Chromium. An operator reads verdicts with their reasons, and bounce rates. The operator
 * copies the sendable addresses, unblocks an address and allows a domain. Prints a report as one line of JSON. The exit
 * code is 1 when a step timed out.
 *
 * Standard input: {url, chromium, tokens: {olga, max, post}, screenshots}; `post` belongs to a mail server.
 */

import { navigate, readInput } from "../browser.mjs";
import { openScreenChecker } from "../screen-checker.mjs";

const RECORD =
  "mutation ($events: [DeliveryEventInput!]!) { recordDeliveries(events: $events) { accepted rejected { message } } }";
const ADDRESS_BOOK =
  "query ($addresses: [String!]!) { addressBook(addresses: $addresses) { blocked success } }";
const AGGREGATION_TIMEOUT_MS = 60_000;
const LOOKUP_TIMEOUT_MS = 45_000;

const { tokens, ...options } = readInput();
const { findings, run, open, checkScreen, close } = await openScreenChecker(options);

try {
  await recordMail();
  const max = await open(tokens.max, "/mail");
  await max.getByText("Only operators can open this screen").waitFor();
  await checkScreen(max, "mail-forbidden");
  await max.context().close();
  const olga = await open(tokens.olga, "/mail", { permissions: ["clipboard-read", "clipboard-write"] });
  await checkScreen(olga, "mail-empty");
  const report = { verdicts: await lookUpAddresses(olga) };
  report.blocked = await blockedAddresses(olga);
  report.copied = await copySendable(olga);
  report.unblocked = await unblockAddress(olga);
  report.sendable = await allowDomain(olga);
  report.domain = await restoreAutomaticRule(olga);
  report.rate = await bounceRates(olga);
  console.log(JSON.stringify({ ...report, ...findings }));
} finally {
  await close();
}

/**
 * Records forty deliveries, one bounce of an unknown address, and one bounce of a domain that does not exist. Waits
 * until they are in the address book.
 */
async function recordMail() {
  const at = new Date().toISOString();
  const event = (n, address, smtpCode, enhancedStatus) => ({
    eventId: `e${n}`,
    messageId: `m${n}`,
    at,
    address,
    smtpCode,
    enhancedStatus,
  });
  const events = Array.from({ length: 40 }, (_, n) => event(n, "ann@good.example", 250, "2.0.0"));
  events.push(event(40, "gone@good.example", 550, "5.1.1"), event(41, "who@dead.example", 550, "5.1.2"));
  const { recordDeliveries } = await run(tokens.post, RECORD, { events });
  if (recordDeliveries.accepted !== events.length) throw new Error(JSON.stringify(recordDeliveries));
  const until = Date.now() + AGGREGATION_TIMEOUT_MS;
  const addresses = ["ann@good.example", "gone@good.example", "who@dead.example"];
  for (;;) {
    const [ann, gone, who] = (await run(tokens.post, ADDRESS_BOOK, { addresses })).addressBook;
    if (ann.success === 40 && gone.blocked && who.blocked) return;
    if (Date.now() > until) throw new Error("The deliveries were not aggregated in time.");
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}

function row(page, address) {
  return page.locator(`[data-address="${address}"]`);
}

/** Repeats the lookup until `expected` is visible. Each server process caches domains for five seconds. */
async function lookUpUntil(page, expected) {
  const until = Date.now() + LOOKUP_TIMEOUT_MS;
  do {
    await page.getByRole("button", { name: "Look up" }).click();
    await page.waitForTimeout(300);
  } while ((await expected.count()) === 0 && Date.now() < until);
  await expected.waitFor();
}

/** Looks up pasted addresses. Returns the address, the blocked state and the text of each row. */
async function lookUpAddresses(page) {
  const pasted = "Ann <ann@good.example>, gone@good.example\nnew@good.example new@dead.example\nnobody";
  await page.getByRole("textbox", { name: "Check addresses before sending" }).fill(pasted);
  await page.getByText("5 addresses", { exact: true }).waitFor();
  await lookUpUntil(page, page.locator('[data-address="new@dead.example"][data-blocked="true"]'));
  await checkScreen(page, "mail-verdicts");
  return await page
    .getByTestId("standings")
    .getByRole("listitem")
    .evaluateAll((rows) =>
      rows.map(({ dataset, innerText }) => [dataset.address, dataset.blocked, innerText]),
    );
}

/** Returns the addresses that remain under the filter Blocked. */
async function blockedAddresses(page) {
  await page.getByRole("button", { name: /^Blocked/ }).click();
  const addresses = await page
    .locator("[data-address]")
    .evaluateAll((rows) => rows.map(({ dataset }) => dataset.address));
  await page.getByRole("button", { name: /^All \d/ }).click();
  return addresses;
}

/** Copies the sendable addresses. Returns the clipboard's text. */
async function copySendable(page) {
  await page.getByRole("button", { name: "Copy 2 sendable" }).click();
  await page.getByText("2 addresses copied").waitFor();
  return await page.evaluate(() => navigator.clipboard.readText());
}

/** Unblocks an address. Returns whether the dialog accepts an empty reason, and the text of the unblocked row. */
async function unblockAddress(page) {
  await row(page, "gone@good.example")
    .getByRole("button", { name: /^Unblock/ })
    .click();
  const dialog = page.getByRole("dialog", { name: "Unblock" });
  await dialog.waitFor();
  await checkScreen(page, "mail-unblock");
  const canSubmitWithoutReason = await dialog.getByRole("button", { name: "Unblock" }).isEnabled();
  await dialog.getByRole("textbox", { name: "Reason" }).fill("The mailbox is back");
  await dialog.getByRole("button", { name: "Unblock" }).click();
  const unblocked = page.locator('[data-address="gone@good.example"][data-blocked="false"]');
  await unblocked.waitFor();
  return { canSubmitWithoutReason, text: await unblocked.innerText() };
}

/** Allows a domain. Returns the text of the filter Sendable, which contains the number of sendable addresses. */
async function allowDomain(page) {
  await row(page, "new@dead.example")
    .getByRole("button", { name: /^Allow domain/ })
    .click();
  const dialog = page.getByRole("dialog", { name: "Allow domain" });
  await dialog.getByRole("textbox", { name: "Reason" }).fill("It moved");
  await dialog.getByRole("button", { name: "Allow domain" }).click();
  const allowed = page.locator('[data-address="new@dead.example"][data-blocked="false"]');
  await allowed.waitFor();
  return await page.getByRole("button", { name: /^Sendable/ }).innerText();
}

/** Ends the manual setting of the domain. Returns the text of its row. */
async function restoreAutomaticRule(page) {
  await navigate(page, "/mailDomains");
  await page.getByRole("textbox", { name: "Domains" }).fill("who@dead.example, good.example");
  const dead = page.locator('[data-domain="dead.example"]');
  await lookUpUntil(page, dead.getByText("Manual setting"));
  await checkScreen(page, "mail-domains");
  await dead.getByRole("button", { name: "Use automatic rule" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByRole("textbox", { name: "Reason" }).fill("Tried, and it is dead");
  await dialog.getByRole("button", { name: "Use automatic rule" }).click();
  await page.locator('[data-domain="dead.example"][data-blocked="true"]').waitFor();
  return await dead.innerText();
}

/** Returns the bounce rate of all domains, and the label of one domain's chart. */
async function bounceRates(page) {
  await navigate(page, "/bounceRates");
  await page.getByTestId("bounce-rate").waitFor();
  await checkScreen(page, "mail-rates");
  const all = await page.getByTestId("bounce-rate").innerText();
  await page.getByRole("searchbox", { name: "Domain" }).fill("good.example");
  await page.getByText("1 of 41 bounced", { exact: true }).waitFor();
  const chart = await page.getByRole("img", { name: /^Bounce rate by day/ }).getAttribute("aria-label");
  return { all, chart };
}
