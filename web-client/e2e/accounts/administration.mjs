/**
 * The administration in a real Chromium, by keyboard alone: users with their roles and states, keys, invitations, held
 * posts, erasures and the audit log. Prints a report as one line of JSON.
 *
 * Standard input: {url, chromium, tokens: {ann, ben, dora, eve, max}, screenshots}. Ann and Dora are administrators.
 */
import { readFileSync } from "node:fs";
import { navigate, readInput } from "../browser.mjs";
import { choose, expectFocus, press, tabTo, type } from "../keyboard.mjs";
import { chooseLanguage, openScreenChecker } from "../screen-checker.mjs";

const SET_ROLES = "mutation ($id: ID!, $roles: [Role!]!) { setUserRoles(userId: $id, roles: $roles) { id } }";
const SCHEDULED = '{ scheduledPosts(latest: "now", limit: 1) { items { dueAt } } }';
const SCHEDULE = "mutation ($input: SchedulePostInput!) { schedulePost(input: $input) { id } }";

const { tokens, ...options } = readInput();
const { findings, run, open, checkVariants, close } = await openScreenChecker(options);

try {
  for (const token of Object.values(tokens)) await run(token, "{ viewer { id } }");
  const ann = await open(tokens.ann, "/admin");
  const report = { roles: await changeRoles(ann) };
  report.access = await endAndRestoreAccess(ann);
  report.history = await openHistory(ann);
  report.live = await waitForNewEntry(ann);
  report.filtered = await filterEntries(ann);
  report.key = await manageKeys(ann);
  report.invitation = await inviteAndRevoke(ann);
  report.refused = await openWithoutRight();
  report.signedOut = await endSessions(ann);
  report.held = await decideHeldPosts(ann);
  report.erased = await erase(ann);
  report.exported = await exportData(ann);
  await deleteAccount();
  report.log = await readLog(ann);
  console.log(JSON.stringify({ ...report, ...findings }));
} finally {
  await close();
}

function row(page, id) {
  return page.locator(`[data-user="${id}"]`);
}

/** Makes Ben an operator. Returns the number of buttons in Ann's own row, and the text of Ben's row. */
async function changeRoles(page) {
  await row(page, "ann").waitFor();
  const ownButtons = await row(page, "ann").getByRole("button").count();
  await checkVariants(page, "users");
  await type(page, page.getByRole("searchbox", { name: "Find a user" }), "@be");
  await row(page, "ann").waitFor({ state: "detached" });
  const opener = row(page, "ben").getByRole("button", { name: "Roles of Ben" });
  await press(page, opener);
  const dialog = page.getByRole("dialog", { name: "Roles of Ben" });
  await dialog.waitFor();
  await press(page, dialog.getByRole("checkbox", { name: /Operator/ }), "Space");
  await checkVariants(page, "roles");
  await page.keyboard.press("Enter");
  await dialog.waitFor({ state: "detached" });
  await row(page, "ben").getByText("Operator").waitFor();
  await expectFocus(page, opener);
  return { ownButtons, text: await row(page, "ben").innerText() };
}

/** Deactivates and reactivates Ben. Returns his state in the API after each, and whether a reason may be empty. */
async function endAndRestoreAccess(page) {
  const states = [];
  const addState = async () => {
    const query = '{ organizationUsers(query: "ben") { deactivated } }';
    states.push((await run(tokens.dora, query)).organizationUsers[0].deactivated);
  };
  await press(page, row(page, "ben").getByRole("button", { name: "Deactivate Ben" }));
  const dialog = page.getByRole("dialog", { name: "Deactivate Ben" });
  const canSubmitWithoutReason = await dialog
    .getByRole("button", { name: "Deactivate", exact: true })
    .isEnabled();
  await page.keyboard.type("Left the company");
  await checkVariants(page, "deactivate");
  await page.keyboard.press("Enter");
  await row(page, "ben").getByText("Deactivated").waitFor();
  await addState();
  await expectFocus(page, row(page, "ben").getByRole("button", { name: "Reactivate Ben" }));
  await press(page, page.getByRole("searchbox"), "Control+A", { back: true });
  await page.keyboard.press("Delete");
  await row(page, "dora").waitFor();
  await choose(page, page.getByLabel("State"), "Deactivated");
  await row(page, "dora").waitFor({ state: "detached" });
  await press(page, row(page, "ben").getByRole("button", { name: "Reactivate Ben" }));
  await checkVariants(page, "reactivate");
  await press(page, page.getByRole("dialog").getByRole("button", { name: "Reactivate", exact: true }));
  await page.getByText("Ben can sign in again").waitFor();
  await addState();
  return { states, canSubmitWithoutReason };
}

function entries(page) {
  return page.locator("[data-audit]");
}

/** Opens Ben's history. Returns the paragraphs of the entries about him, each as one line. */
async function openHistory(page) {
  await press(page, row(page, "ben").getByRole("link", { name: "History of Ben" }));
  await page.getByRole("group", { name: "Person concerned" }).getByText("Ben").waitFor();
  await entries(page).nth(2).waitFor();
  await press(page, page.getByText("Details").first());
  await checkVariants(page, "audit");
  return (await entries(page).locator("p").allInnerTexts()).map((text) => text.replaceAll("\n", " "));
}

/** Dora changes Ben's roles. Returns the new entry, which appears without a reload. */
async function waitForNewEntry(page) {
  await run(tokens.dora, SET_ROLES, { id: "ben", roles: ["MEMBER"] });
  await entries(page).filter({ hasText: "Dora" }).waitFor();
  return await entries(page).first().locator("p").first().innerText();
}

/** Filters by a person, a kind of change and a day. Returns the number of entries for each filter. */
async function filterEntries(page) {
  const counts = {};
  await press(page, page.getByRole("button", { name: "Remove Ben" }), "Enter", { back: true });
  await type(page, page.getByRole("combobox", { name: "Done by" }), "dor");
  await page.getByRole("option", { name: /Dora/ }).waitFor();
  await page.keyboard.press("Enter");
  await entries(page).filter({ hasText: "Ann" }).first().waitFor({ state: "detached" });
  counts.byDora = await entries(page).count();
  await press(page, page.getByRole("button", { name: "Remove Dora" }));
  await entries(page).nth(3).waitFor();
  await choose(page, page.getByLabel("Action"), "User deactivated");
  await entries(page).nth(1).waitFor({ state: "detached" });
  counts.deactivated = await entries(page).count();
  await type(page, page.getByLabel("To", { exact: true }), "01012020");
  await page.getByText("No entries").waitFor();
  counts.longAgo = await entries(page).count();
  return counts;
}

/** Creates, rotates and revokes a service key. Returns whether each dialog shows a key, and the text of the row. */
async function manageKeys(page) {
  await navigate(page, "/adminKeys");
  await page.getByText("No service keys").waitFor();
  const opener = page.getByRole("button", { name: "New key" });
  await press(page, opener);
  await page.keyboard.type("Mail server");
  await press(page, page.getByRole("checkbox", { name: "mail:ingest" }), "Space");
  await checkVariants(page, "new-key");
  await press(page, page.getByRole("button", { name: "Create", exact: true }));
  const secretField = page.getByRole("dialog").getByLabel("Service key");
  const isKey = async () => /^nrk_[0-9a-z]{26}_[0-9A-Za-z]{49}$/.test(await secretField.inputValue());
  await secretField.waitFor();
  await checkVariants(page, "key");
  const shown = [await isKey()];
  await press(page, page.getByRole("button", { name: "Done" }));
  await expectFocus(page, opener);
  await press(page, page.getByRole("button", { name: "Rotate Mail server" }));
  await checkVariants(page, "rotate-key");
  await press(page, page.getByRole("button", { name: "Rotate", exact: true }));
  await secretField.waitFor();
  shown.push(await isKey());
  await press(page, page.getByRole("button", { name: "Done" }));
  await expectFocus(page, page.getByRole("button", { name: "Rotate Mail server" }));
  await checkVariants(page, "keys");
  await press(page, page.getByRole("button", { name: "Revoke Mail server" }));
  await checkVariants(page, "revoke-key");
  await press(page, page.getByRole("dialog").getByRole("button", { name: "Revoke", exact: true }));
  await page.locator("[data-key]").getByText("Revoked", { exact: true }).waitFor();
  return { shown, text: await page.locator("[data-key]").innerText() };
}

/** Invites people by a link, and revokes the invitation. Returns whether a link is shown, and the text of the row. */
async function inviteAndRevoke(page) {
  await navigate(page, "/adminInvitations");
  await page.getByText("No invitations").waitFor();
  const opener = page.getByRole("button", { name: "Invite" });
  await press(page, opener);
  await press(page, page.getByLabel("Maximum number of people"), "Control+A");
  await page.keyboard.type("5");
  await checkVariants(page, "invite");
  await press(page, page.getByRole("button", { name: "Create link" }));
  const link = page.getByRole("dialog").getByLabel("Link");
  await link.waitFor();
  const url = await link.inputValue();
  await press(page, page.getByRole("button", { name: "Done" }));
  await page.getByRole("button", { name: /^Revoke the invitation/ }).waitFor();
  await expectFocus(page, opener);
  await checkVariants(page, "invitations");
  await press(page, page.getByRole("button", { name: /^Revoke the invitation/ }));
  const row = page.locator("[data-invitation]");
  await row.getByText("Revoked").waitFor();
  return { isLink: url.includes("#invitation="), text: await row.innerText() };
}

/** Signs Dora out of her phone, then of all browsers. Returns the choices, and how many browsers are left each time. */
async function endSessions(page) {
  await navigate(page, "/admin");
  const dialog = await openSignOut(page);
  const phone = dialog.getByRole("radio", { name: /Safari/ });
  await phone.waitFor();
  const browsers = await dialog.locator("label span.font-medium").allInnerTexts();
  await tabTo(page, dialog.getByRole("radio", { name: "All browsers" }));
  for (let step = 0; step < browsers.length && !(await phone.isChecked()); step++)
    await page.keyboard.press("ArrowDown");
  const left = [await signOut(page, dialog)];
  await openSignOut(page);
  left.push(await signOut(page, dialog));
  return { browsers: browsers.toSorted(), left };
}

async function openSignOut(page) {
  await openMenu(page, "dora", "Dora");
  await press(page, page.getByRole("button", { name: "Sign out …" }));
  const dialog = page.getByRole("dialog", { name: "Sign Dora out" });
  await dialog.getByRole("radio").nth(1).waitFor();
  return dialog;
}

/** Gives a reason and signs Dora out. Returns how many browsers are left. */
async function signOut(page, dialog) {
  await type(page, dialog.getByLabel("Reason"), "Lost the phone");
  await checkVariants(page, "end-sessions");
  await page.keyboard.press("Enter");
  await dialog.waitFor({ state: "detached" });
  const query = '{ userSessions(userId: "dora") { id } }';
  return (await run(tokens.ann, query)).userSessions.length;
}

async function openMenu(page, id, name) {
  await press(page, row(page, id).getByRole("button", { name: `More actions for ${name}` }));
  await page.getByRole("dialog", { name: `More actions for ${name}` }).waitFor();
}

/**
 * Ben has two scheduled posts and is deactivated. Ann schedules one post again at another time, and cancels the other.
 * Returns the text of the first row, and the new time in the API.
 */
async function decideHeldPosts(page) {
  const dueAt = new Date(Date.now() + 86_400_000).toISOString();
  for (const text of ["First fire", "Second fire"])
    await run(tokens.ben, SCHEDULE, { input: { text, dueAt, toHomeFeed: true } });
  await run(tokens.dora, 'mutation { deactivateUser(userId: "ben", reason: "Left") { id } }');
  await navigate(page, "/adminHeld");
  await page.getByRole("main").getByText("First fire").waitFor();
  const text = await page.locator("[data-held]").first().innerText();
  await checkVariants(page, "held");
  await press(
    page,
    page
      .locator("[data-held]")
      .first()
      .getByRole("button", { name: /^Schedule again/ }),
  );
  const dialog = page.getByRole("dialog");
  await type(page, dialog.getByRole("combobox", { name: "New author" }), "dor");
  await dialog.getByRole("option", { name: /Dora/ }).waitFor();
  await page.keyboard.press("Enter");
  await tabTo(page, dialog.getByLabel("New time (optional)"));
  // Month, day, year, hour and minute.
  await page.keyboard.type("01022040");
  await page.keyboard.press("ArrowRight");
  await page.keyboard.type("0915AM");
  await checkVariants(page, "release");
  await press(page, dialog.getByRole("button", { name: "Schedule", exact: true }));
  await page.getByText("Dora is the new author of the post").waitFor();
  await press(page, page.locator("[data-held]").getByRole("button", { name: /^Cancel post/ }));
  await checkVariants(page, "cancel-held");
  await press(page, dialog.getByRole("button", { name: "Cancel post", exact: true }));
  await page.getByText("No held posts").waitFor();
  const [{ dueAt: newDueAt }] = (await run(tokens.dora, SCHEDULED)).scheduledPosts.items;
  return { text, newDueAt };
}

/** Ann erases Max. Returns whether the button is enabled before and after she types the handle, and the row's text. */
async function erase(page) {
  await navigate(page, "/admin");
  await openMenu(page, "max", "Max");
  await press(page, page.getByRole("button", { name: "Erase …" }));
  const dialog = page.getByRole("dialog", { name: "Erase Max" });
  const button = dialog.getByRole("button", { name: "Erase", exact: true });
  const enabled = [await button.isEnabled()];
  await page.keyboard.type("@max");
  enabled.push(await button.isEnabled());
  await checkVariants(page, "erase");
  await page.keyboard.press("Enter");
  await page.getByText("The erasure begins in 30 seconds").waitFor();
  await navigate(page, "/adminErasures");
  const erasure = page.locator('[data-erasure="max"]');
  await erasure.waitFor();
  await checkVariants(page, "erasures");
  return { enabled, text: await erasure.innerText() };
}

/** Downloads the log, and changes to Japanese. Returns the actions in the file, and the sentences on the screen. */
async function readLog(page) {
  await navigate(page, "/adminAudit");
  await entries(page).nth(3).waitFor();
  const downloading = page.waitForEvent("download");
  await press(page, page.getByRole("button", { name: "Download" }));
  const path = `${options.screenshots}/audit.ndjson`;
  await (await downloading).saveAs(path);
  const lines = readFileSync(path, "utf8").trim().split("\n");
  await chooseLanguage(page, "ja");
  const sentences = await entries(page).locator("p:first-child").allInnerTexts();
  return { actions: lines.map((line) => JSON.parse(line).action), sentences };
}

/** Ann exports her data. Returns the name of the downloaded archive. */
async function exportData(page) {
  await navigate(page, "/myData");
  await press(page, page.getByRole("button", { name: "Export my data" }));
  const download = page.getByRole("button", { name: "Download" });
  await download.waitFor();
  await checkVariants(page, "export");
  const downloading = page.waitForEvent("download");
  await press(page, download);
  return (await downloading).suggestedFilename();
}

/** Eve deletes her account. */
async function deleteAccount() {
  const page = await open(tokens.eve, "/myData");
  await press(page, page.getByRole("button", { name: "Delete my account …" }));
  await page.keyboard.type("eve");
  await checkVariants(page, "delete-account");
  await page.keyboard.press("Enter");
  await page.getByRole("navigation", { name: "Screens" }).waitFor({ state: "detached" });
}

/** Max is no administrator. Returns the number of links to the administration that he sees. */
async function openWithoutRight() {
  const page = await open(tokens.max, "/admin");
  await page.getByText("Only administrators can open this screen").waitFor();
  return await page.getByRole("link", { name: "Admin" }).count();
}
