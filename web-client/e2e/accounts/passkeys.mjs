/**
 * Passkeys in Chromium with its virtual authenticator, by keyboard alone: an account without a password, signing in
 * without typing anything, and the list of passkeys. Prints a report as one line of JSON.
 *
 * Standard input: {url, chromium, firstAdmin, screenshots}. The exit code is 1 when a step timed out.
 */
import { addAuthenticator, navigate, readInput, signInMethod } from "../browser.mjs";
import { expectFocus, press, replaceText } from "../keyboard.mjs";
import { openScreenChecker } from "../screen-checker.mjs";

const { firstAdmin, ...options } = readInput();
const { findings, openWindow, checkVariants, close } = await openScreenChecker(options);

try {
  const page = await openWindow();
  const authenticator = await addAuthenticator(page);
  const report = {};
  report.methods = [await createAccount(page)];
  await signOut(page);
  report.refusal = await refuseWithoutVerification(page, authenticator);
  await press(page, page.getByRole("button", { name: "Sign in with a passkey" }));
  report.methods.push(await signInMethod(page));
  report.list = await managePasskeys(page, authenticator);
  report.counter = (await authenticator.credentials())[0].signCount;
  console.log(JSON.stringify({ ...report, ...findings }));
} finally {
  await close();
}

async function createAccount(page) {
  await page.goto(firstAdmin);
  await replaceText(page, page.getByLabel("Mail address"), "ada@example.org");
  await replaceText(page, page.getByLabel("Name", { exact: true }), "Ada");
  await press(page, page.getByRole("button", { name: "Use a passkey instead of a password" }));
  await expectFocus(page, page.getByRole("button", { name: "Use a password instead of a passkey" }));
  await checkVariants(page, "new-account");
  await press(page, page.getByRole("button", { name: "Create account" }));
  return await signInMethod(page);
}

async function signOut(page) {
  await press(page, page.getByRole("button", { name: "Account" }));
  await press(page, page.getByRole("button", { name: "Sign out" }));
  await page.getByRole("button", { name: "Sign in with a passkey" }).waitFor();
}

/** Tries to sign in while the authenticator does not verify its user. Returns the refusal. */
async function refuseWithoutVerification(page, authenticator) {
  await checkVariants(page, "sign-in");
  await authenticator.setVerified(false);
  const button = page.getByRole("button", { name: "Sign in with a passkey" });
  await press(page, button);
  const refusal = await page.getByRole("alert").innerText();
  await expectFocus(page, button);
  await checkVariants(page, "refused");
  await authenticator.setVerified(true);
  return refusal;
}

/**
 * Tries to remove the only passkey and to add it again. Then adds another passkey, renames it, and removes the first
 * passkey. Returns both refusals and the texts of the passkeys that remain.
 */
async function managePasskeys(page, authenticator) {
  await navigate(page, "/myData");
  const rows = page.locator("[data-passkey]");
  await rows.first().waitFor();
  await remove(page, rows.first());
  const removalRefusal = await page.getByText("This is your only way to sign in.").innerText();
  const adder = page.getByRole("button", { name: "Add a passkey" });
  await press(page, adder);
  const additionRefusal = await page.getByText("This passkey can’t be added").innerText();
  await expectFocus(page, adder);
  await authenticator.clear();
  await page.keyboard.press("Enter");
  await rows.nth(1).waitFor();
  await rename(page, rows.nth(1), "Key ring");
  await checkVariants(page, "passkeys");
  await remove(page, rows.first());
  await rows.nth(1).waitFor({ state: "detached" });
  return { removalRefusal, additionRefusal, remaining: await rows.allInnerTexts() };
}

async function rename(page, row, name) {
  const opener = row.getByRole("button", { name: /^Rename/ });
  await press(page, opener);
  await expectFocus(page, page.getByLabel("Name of the passkey"));
  await replaceText(page, page.getByLabel("Name of the passkey"), name);
  await checkVariants(page, "rename-passkey");
  await page.keyboard.press("Enter");
  await row.getByText(name).waitFor();
  await expectFocus(page, opener);
}

/** Removes a passkey after the question, whose first button has the focus and changes nothing. */
async function remove(page, row) {
  const opener = row.getByRole("button", { name: /^Remove/ });
  await press(page, opener);
  const dialog = page.getByRole("dialog");
  await expectFocus(page, dialog.getByRole("button", { name: "Cancel" }));
  await page.keyboard.press("Enter");
  await expectFocus(page, opener);
  await page.keyboard.press("Enter");
  await press(page, dialog.getByRole("button", { name: "Remove", exact: true }));
}
