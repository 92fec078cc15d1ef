/**
 * Reports of addresses and the mail policy in a real Chromium. An operator reads why an address is blocked, blocks
 * another one by hand, tries a policy, and sets it after a second operator has set another version. Prints a report as
 * one line of JSON. The exit code is 1 when a step timed out.
 *
 * Standard input: {url, chromium, tokens: {olga, oscar, post}, screenshots}; `post` belongs to a mail server.
 */

import { navigate, readInput } from "../browser.mjs";
import { openScreenChecker } from "../screen-checker.mjs";

const RECORD =
  "mutation ($events: [DeliveryEventInput!]!) { recordDeliveries(events: $events) { accepted rejected { message } } }";
const ADDRESS_BOOK =
  "query ($addresses: [String!]!) { addressBook(addresses: $addresses) { blocked success } }";
const SET_POLICY =
  "mutation ($reason: String!) { setMailPolicy(policy: {softBounceDays: 4}, afterVersion: 0, reason: $reason) { version } }";
const AGGREGATION_TIMEOUT_MS = 60_000;

const { tokens, ...options } = readInput();
const { findings, run, open, checkVariants, close } = await openScreenChecker(options);

try {
  await recordMail();
  const olga = await open(tokens.olga, "/mail");
  const report = { why: await openReport(olga) };
  report.byHand = await blockByHand(olga);
  report.invalid = await blockTogether(olga);
  report.dryRun = await tryPolicy(olga);
  report.conflict = await meetConflict(olga);
  report.set = await setPolicy(olga);
  console.log(JSON.stringify({ ...report, ...findings }));
} finally {
  await close();
}

/** Records a delivery and a bounce of an unknown address, and waits until both are in the address book. */
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
  const events = [event(1, "ann@good.example", 250, "2.0.0"), event(2, "gone@good.example", 550, "5.1.1")];
  const { recordDeliveries } = await run(tokens.post, RECORD, { events });
  if (recordDeliveries.accepted !== events.length) throw new Error(JSON.stringify(recordDeliveries));
  const until = Date.now() + AGGREGATION_TIMEOUT_MS;
  const addresses = ["ann@good.example", "gone@good.example"];
  for (;;) {
    const [ann, gone] = (await run(tokens.post, ADDRESS_BOOK, { addresses })).addressBook;
    if (ann.success === 1 && gone.blocked) return;
    if (Date.now() > until) throw new Error("The deliveries were not aggregated in time.");
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}

function reasonDialog(page, name) {
  return page.getByRole("dialog", { name, exact: true });
}

async function giveReason(page, name, reason) {
  const dialog = reasonDialog(page, name);
  await dialog.getByRole("textbox", { name: "Reason" }).fill(reason);
  await dialog.getByRole("button", { name, exact: true }).click();
}

/** Opens the report of a blocked address, and returns its text. */
async function openReport(page) {
  await page
    .getByRole("textbox", { name: "Check addresses before sending" })
    .fill("gone@good.example ann@good.example");
  await page.getByRole("button", { name: "Look up" }).click();
  await page.getByRole("button", { name: "Why? gone@good.example" }).click();
  const report = page.getByTestId("address-report");
  await report.getByText("No such mailbox").waitFor();
  await checkVariants(page, "mail-report");
  const text = await report.innerText();
  await page.getByRole("button", { name: "Close" }).click();
  return text;
}

/** Blocks an address from its report. Returns the report's text afterwards. */
async function blockByHand(page) {
  await page.getByRole("button", { name: "Why? ann@good.example" }).click();
  const report = page.getByTestId("address-report");
  await report.getByRole("button", { name: "Block", exact: true }).click();
  await giveReason(page, "Block", "Asked by phone");
  await report.getByText("Asked by phone").waitFor();
  const text = await report.innerText();
  await page.getByRole("button", { name: "Close" }).click();
  await page.locator('[data-address="ann@good.example"][data-blocked="true"]').waitFor();
  return text;
}

/** Asks to block a list with an invalid address. Returns the refusal. */
async function blockTogether(page) {
  await page
    .getByRole("textbox", { name: "Check addresses before sending" })
    .fill("new@good.example, nobody");
  await page.getByRole("button", { name: "Block all…", exact: true }).click();
  const refusal = page.getByText("nothing was changed");
  await refusal.waitFor();
  return await refusal.innerText();
}

/** Tries to ignore unknown mailboxes. Returns the text of the dry run. */
async function tryPolicy(page) {
  await navigate(page, "/mailPolicy");
  await page.getByRole("combobox", { name: "Count as: No such mailbox" }).selectOption("IGNORED");
  await page.getByRole("button", { name: "Try it" }).click();
  const result = page.getByTestId("dry-run");
  await result.waitFor();
  await checkVariants(page, "mail-policy");
  return await result.innerText();
}

/** A second operator sets a policy first. Returns the notice, and the choice that the first operator has made. */
async function meetConflict(page) {
  await run(tokens.oscar, SET_POLICY, { reason: "Four days" });
  await page.getByRole("button", { name: "Set policy…" }).click();
  await giveReason(page, "Set policy", "Addresses come back");
  const notice = page.getByText("Somebody else has set version 1");
  await notice.waitFor();
  return {
    notice: await notice.innerText(),
    kept: await page.getByRole("combobox", { name: "Count as: No such mailbox" }).inputValue(),
    canSet: (await page.getByRole("button", { name: "Set policy…" }).count()) > 0,
  };
}

/** Tries the policy again and sets it. Returns the text above the form. */
async function setPolicy(page) {
  await page.getByRole("button", { name: "Try it" }).click();
  await page.getByRole("button", { name: "Set policy…" }).click();
  await giveReason(page, "Set policy", "Addresses come back");
  const origin = page.getByTestId("policy-origin").first();
  await origin.getByText("Version 2").waitFor();
  return await origin.innerText();
}
