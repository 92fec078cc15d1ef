/**
 * The settings of an organization in a real Chromium, by keyboard alone: retention rules, call limits,
 * connected lines and accounts. Prints a report as one line of JSON.
 *
 * Standard input: {url, chromium, tokens: {ann}, screenshots}. Ann is an administrator.
 */
import { readInput } from "../browser.mjs";
import { expectFocus, press, replaceText, type } from "../keyboard.mjs";
import { openScreenChecker } from "../screen-checker.mjs";

const REPLACEMENTS = "{ auditLog(action: ACCOUNT_CREDENTIALS_REPLACED) { id } }";
const RULES = "{ retentionRules { data days } }";

const { tokens, ...options } = readInput();
const { findings, run, open, checkVariants, close } = await openScreenChecker(options);

try {
  await run(tokens.ann, "{ viewer { id } }");
  const page = await open(tokens.ann, "/adminSettings");
  const opener = page.getByRole("button", { name: "Change: Direct messages" });
  await opener.waitFor();
  await checkVariants(page, "settings");
  const shortened = await shorten(page, opener);
  const restored = await restoreDefault(page, opener);
  const callLimits = await limitCalls(page);
  const line = await page.locator('[data-line="SIMULATOR"]').innerText();
  const accounts = await connectAccount(page);
  console.log(JSON.stringify({ shortened, restored, callLimits, line, accounts, ...findings }));
} finally {
  await close();
}

function dialogOf(page) {
  return page.getByRole("dialog", { name: "Direct messages" });
}

async function daysOfDirectMessages() {
  const { retentionRules } = await run(tokens.ann, RULES);
  return retentionRules.find(({ data }) => data === "DIRECT_MESSAGES").days;
}

/** Chooses 30 days. Returns the days in the API, the text of the rule, and whether an invalid number can be saved. */
async function shorten(page, opener) {
  await press(page, opener);
  await page.keyboard.type("0");
  const canSaveInvalid = await dialogOf(page).getByRole("button", { name: "Save" }).isEnabled();
  await page.keyboard.press("Backspace");
  await page.keyboard.type("30");
  await page.getByText("The time is shorter than before").waitFor();
  await checkVariants(page, "retention");
  await press(page, dialogOf(page).getByRole("button", { name: "Save and remove older data" }));
  await dialogOf(page).waitFor({ state: "detached" });
  await expectFocus(page, opener);
  const text = await page.locator('[data-retention="DIRECT_MESSAGES"]').innerText();
  return { canSaveInvalid, days: await daysOfDirectMessages(), text };
}

/** Empties the field, which sets the default. Returns the days in the API, and the text of the rule. */
async function restoreDefault(page, opener) {
  await press(page, opener);
  await page.keyboard.press("Control+A");
  await page.keyboard.press("Delete");
  await press(page, dialogOf(page).getByRole("button", { name: "Save", exact: true }));
  await dialogOf(page).waitFor({ state: "detached" });
  const text = await page.locator('[data-retention="DIRECT_MESSAGES"]').innerText();
  return { days: await daysOfDirectMessages(), text };
}

/** Allows fewer calls at the same time. Returns the limits in the API. */
async function limitCalls(page) {
  const section = page.getByRole("region", { name: "Call limits" });
  await replaceText(page, section.getByLabel("Concurrent calls"), "7");
  await press(page, section.getByRole("button", { name: "Save" }));
  await page.getByText("Limits saved").waitFor();
  return (await run(tokens.ann, "{ callLimits { concurrentCalls } }")).callLimits;
}

/**
 * Connects an account, after credentials in a wrong form; replaces its credentials, and disconnects it. Returns the
 * message at the field, the names of the accounts in the API after each, and whether the audit log has the replacement.
 */
async function connectAccount(page) {
  const section = page.getByRole("region", { name: "Connected accounts" });
  const names = async () => {
    const { connectedAccounts } = await run(tokens.ann, "{ connectedAccounts { name disconnectedAt } }");
    return connectedAccounts.filter(({ disconnectedAt }) => disconnectedAt === null).map(({ name }) => name);
  };
  await type(page, section.getByLabel("Name"), "Beacon");
  await section.getByRole("combobox", { name: "Network" }).selectOption("BLUESKY");
  await type(page, section.getByLabel("Access token / App password"), "harbour");
  await page.keyboard.press("Enter");
  const refusal = await section.getByRole("alert").innerText();
  await checkVariants(page, "refused-credentials");
  await section.getByRole("combobox", { name: "Network" }).selectOption("SANDBOX");
  await section.getByLabel("Name").focus();
  await page.keyboard.press("Enter");
  const account = section.locator('[data-account="Beacon"]');
  await account.waitFor();
  const connected = await names();
  await checkVariants(page, "accounts");
  await press(page, account.getByRole("button", { name: "Replace" }), "Enter", { back: true });
  const dialog = page.getByRole("dialog", { name: "Replace the credentials of Beacon" });
  await dialog.getByLabel("Behaviour").selectOption("slow");
  await checkVariants(page, "replace-credentials");
  await press(page, dialog.getByRole("button", { name: "Replace", exact: true }));
  await page.getByText("Beacon has new credentials").waitFor();
  const { auditLog } = await run(tokens.ann, REPLACEMENTS);
  await press(page, account.getByRole("button", { name: "Disconnect" }));
  await press(page, page.getByRole("dialog").getByRole("button", { name: "Disconnect", exact: true }));
  await account.waitFor({ state: "detached" });
  return { refusal, connected, replacements: auditLog.length, disconnected: await names() };
}
