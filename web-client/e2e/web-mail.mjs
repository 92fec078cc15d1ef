/**
 * An operator uses the address book, in a real Chromium: verdicts with reasons, copying the sendable addresses,
 * unblocking an address and allowing a domain, bounce rates. Prints a report as one line of JSON; exit code 1 when a
 * step timed out.
 *
 * Standard input: {url, chromium, tokens: {olga, max, post}, screenshots}; post is a mail server.
 */
import { beginLooking } from "./looking.mjs";
import { readOrder, go as visit } from "./visitor.mjs";

const RECORD =
  "mutation ($events: [DeliveryEventInput!]!) { recordDeliveries(events: $events) { accepted rejected { message } } }";
const BOOK = "query ($addresses: [String!]!) { addressBook(addresses: $addresses) { blocked success } }";
const FOLDED_WITHIN_MS = 60_000;
const KNOWN_WITHIN_MS = 45_000;

const { tokens, ...where } = readOrder();
const { seen, ask, open, look, close } = await beginLooking(where);

try {
  await deliver();
  const max = await open(tokens.max, "/mail");
  await max.getByText("The address book is for operators").waitFor();
  await look(max, "mail-forbidden");
  await max.context().close();
  const olga = await open(tokens.olga, "/mail", { permissions: ["clipboard-read", "clipboard-write"] });
  await look(olga, "mail-empty");
  const story = { verdicts: await verdicts(olga) };
  story.blocked = await blocked(olga);
  story.copied = await copied(olga);
  story.unblocked = await unblock(olga);
  story.allowed = await allow(olga);
  story.domain = await domain(olga);
  story.rate = await rates(olga);
  console.log(JSON.stringify({ ...story, ...seen }));
} finally {
  await close();
}

/** Records forty deliveries, one bounce of an unknown address, and one of a domain that does not exist. */
async function deliver() {
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
  const { recordDeliveries } = await ask(tokens.post, RECORD, { events });
  if (recordDeliveries.accepted !== events.length) throw new Error(JSON.stringify(recordDeliveries));
  const until = Date.now() + FOLDED_WITHIN_MS;
  const addresses = ["ann@good.example", "gone@good.example", "who@dead.example"];
  for (;;) {
    const [ann, gone, who] = (await ask(tokens.post, BOOK, { addresses })).addressBook;
    if (ann.success === 40 && gone.blocked && who.blocked) return;
    if (Date.now() > until) throw new Error("The deliveries were not folded in time.");
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}

function row(page, address) {
  return page.locator(`[data-address="${address}"]`);
}

/** Repeats the lookup until it shows `wanted`: each server process caches domains for five seconds. */
async function lookUpUntil(page, wanted) {
  const until = Date.now() + KNOWN_WITHIN_MS;
  do {
    await page.getByRole("button", { name: "Look up" }).click();
    await page.waitForTimeout(300);
  } while ((await wanted.count()) === 0 && Date.now() < until);
  await wanted.waitFor();
}

async function verdicts(page) {
  const pasted = "Ann <ann@good.example>, gone@good.example\nnew@good.example new@dead.example\nnobody";
  await page.getByRole("textbox", { name: "Check addresses before sending" }).fill(pasted);
  await page.getByText("5 addresses", { exact: true }).waitFor();
  await lookUpUntil(page, page.locator('[data-address="new@dead.example"][data-blocked="true"]'));
  await look(page, "mail-verdicts");
  return await page
    .getByTestId("standings")
    .getByRole("listitem")
    .evaluateAll((rows) =>
      rows.map(({ dataset, innerText }) => [dataset.address, dataset.blocked, innerText]),
    );
}

async function blocked(page) {
  await page.getByRole("button", { name: /^Blocked/ }).click();
  const left = await page
    .locator("[data-address]")
    .evaluateAll((rows) => rows.map(({ dataset }) => dataset.address));
  await page.getByRole("button", { name: /^All \d/ }).click();
  return left;
}

async function copied(page) {
  await page.getByRole("button", { name: "Copy 2 sendable" }).click();
  await page.getByText("2 addresses copied").waitFor();
  return await page.evaluate(() => navigator.clipboard.readText());
}

async function unblock(page) {
  await row(page, "gone@good.example")
    .getByRole("button", { name: /^Unblock/ })
    .click();
  const dialog = page.getByRole("dialog", { name: "Unblock" });
  await dialog.waitFor();
  await look(page, "mail-unblock");
  const useless = await dialog.getByRole("button", { name: "Unblock" }).isEnabled();
  await dialog.getByRole("textbox", { name: "Reason" }).fill("The mailbox is back");
  await dialog.getByRole("button", { name: "Unblock" }).click();
  const now = page.locator('[data-address="gone@good.example"][data-blocked="false"]');
  await now.waitFor();
  return { withoutReason: useless, text: await now.innerText() };
}

async function allow(page) {
  await row(page, "new@dead.example")
    .getByRole("button", { name: /^Allow domain/ })
    .click();
  const dialog = page.getByRole("dialog", { name: "Allow domain" });
  await dialog.getByRole("textbox", { name: "Reason" }).fill("It moved");
  await dialog.getByRole("button", { name: "Allow domain" }).click();
  const now = page.locator('[data-address="new@dead.example"][data-blocked="false"]');
  await now.waitFor();
  return await page.getByRole("button", { name: /^Sendable/ }).innerText();
}

/** Returns the same domain to the automatic rule. */
async function domain(page) {
  await visit(page, "/mailDomains");
  await page.getByRole("textbox", { name: "Domains" }).fill("who@dead.example, good.example");
  const dead = page.locator('[data-domain="dead.example"]');
  await lookUpUntil(page, dead.getByText("Manual setting"));
  await look(page, "mail-domains");
  await dead.getByRole("button", { name: "Use automatic rule" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByRole("textbox", { name: "Reason" }).fill("Tried, and it is dead");
  await dialog.getByRole("button", { name: "Use automatic rule" }).click();
  await page.locator('[data-domain="dead.example"][data-blocked="true"]').waitFor();
  return await dead.innerText();
}

async function rates(page) {
  await visit(page, "/bounceRates");
  await page.getByTestId("bounce-rate").waitFor();
  await look(page, "mail-rates");
  const all = await page.getByTestId("bounce-rate").innerText();
  await page.getByRole("searchbox", { name: "Domain" }).fill("good.example");
  await page.getByText("1 of 41 bounced", { exact: true }).waitFor();
  const chart = await page.getByRole("img", { name: /^Bounce rate by day/ }).getAttribute("aria-label");
  return { all, chart };
}
