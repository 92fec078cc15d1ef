/**
 * The administration in a real Chromium: users with their roles and states, by keyboard, and the audit log. Prints a
 * report as one line of JSON.
 *
 * Standard input: {url, chromium, tokens: {ann, ben, dora, max}, screenshots}. Ann and Dora are administrators.
 */
import { navigate, readInput } from "./browser.mjs";
import { openScreenChecker } from "./screen-checker.mjs";

const SET_ROLES = "mutation ($id: ID!, $roles: [Role!]!) { setUserRoles(userId: $id, roles: $roles) { id } }";

const { tokens, ...options } = readInput();
const { findings, run, open, checkBothSizes, close } = await openScreenChecker(options);

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
  report.japanese = await checkInJapanese();
  report.refused = await openWithoutRight();
  console.log(JSON.stringify({ ...report, ...findings }));
} finally {
  await close();
}

function row(page, id) {
  return page.locator(`[data-user="${id}"]`);
}

/** Makes Ben an operator, by keyboard alone. Returns the roles that his row shows. */
async function changeRoles(page) {
  await row(page, "ann").waitFor();
  const ownButtons = await row(page, "ann").getByRole("button").count();
  await checkBothSizes(page, "users");
  const search = page.getByRole("searchbox", { name: "Find a user" });
  await search.focus();
  await page.keyboard.type("@be");
  await row(page, "ann").waitFor({ state: "detached" });
  await row(page, "ben").getByRole("button", { name: "Roles of Ben" }).focus();
  await page.keyboard.press("Enter");
  const dialog = page.getByRole("dialog", { name: "Roles of Ben" });
  await dialog.waitFor();
  await page.keyboard.press("Tab");
  await page.keyboard.press("Space");
  await checkBothSizes(page, "roles");
  await page.keyboard.press("Enter");
  await dialog.waitFor({ state: "detached" });
  await row(page, "ben").getByText("Operator").waitFor();
  return { ownButtons, text: await row(page, "ben").innerText() };
}

/** Deactivates and reactivates Ben. Returns what the API says about him after each. */
async function endAndRestoreAccess(page) {
  const states = [];
  const state = async () => {
    const query = '{ organizationUsers(query: "ben") { deactivated } }';
    states.push((await run(tokens.dora, query)).organizationUsers[0].deactivated);
  };
  await row(page, "ben").getByRole("button", { name: "Deactivate Ben" }).press("Enter");
  const dialog = page.getByRole("dialog", { name: "Deactivate Ben" });
  const canSubmitWithoutReason = await dialog
    .getByRole("button", { name: "Deactivate", exact: true })
    .isEnabled();
  await page.keyboard.type("Left the company");
  await checkBothSizes(page, "deactivate");
  await page.keyboard.press("Enter");
  await row(page, "ben").getByText("Deactivated").waitFor();
  await state();
  await page.getByRole("searchbox").fill("");
  await row(page, "dora").waitFor();
  await page.getByLabel("State").selectOption("Deactivated");
  await row(page, "dora").waitFor({ state: "detached" });
  await row(page, "ben").getByRole("button", { name: "Reactivate Ben" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Reactivate", exact: true }).click();
  await page.getByText("Ben can sign in again").waitFor();
  await state();
  return { states, canSubmitWithoutReason };
}

function entries(page) {
  return page.locator("[data-audit]");
}

/** Returns the entries about Ben, as one line each. */
async function openHistory(page) {
  await row(page, "ben").getByRole("link", { name: "History of Ben" }).click();
  await page.getByRole("group", { name: "Person concerned" }).getByText("Ben").waitFor();
  await entries(page).nth(2).waitFor();
  await page.getByText("Details").first().click();
  await checkBothSizes(page, "audit");
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
  await page.getByRole("button", { name: "Remove Ben" }).click();
  const actor = page.getByRole("combobox", { name: "Done by" });
  await actor.focus();
  await page.keyboard.type("dor");
  await page.getByRole("option", { name: /Dora/ }).waitFor();
  await page.keyboard.press("Enter");
  await entries(page).filter({ hasText: "Ann" }).first().waitFor({ state: "detached" });
  counts.byDora = await entries(page).count();
  await page.getByRole("button", { name: "Remove Dora" }).click();
  await entries(page).nth(3).waitFor();
  await page.getByLabel("Action").selectOption("User deactivated");
  await entries(page).nth(1).waitFor({ state: "detached" });
  counts.deactivated = await entries(page).count();
  await page.getByLabel("To", { exact: true }).fill("2020-01-01");
  await page.getByText("No entries").waitFor();
  counts.long_ago = await entries(page).count();
  return counts;
}

/** Creates, rotates and revokes a service key. Returns what is shown of it. */
async function manageKeys(page) {
  await navigate(page, "/adminKeys");
  await page.getByText("No service keys").waitFor();
  await page.getByRole("button", { name: "New key" }).press("Enter");
  await page.keyboard.type("Mail server");
  await page.getByRole("checkbox", { name: "mail:ingest" }).press("Space");
  await checkBothSizes(page, "new-key");
  await page.getByRole("button", { name: "Create", exact: true }).press("Enter");
  const secretField = page.getByRole("dialog").getByLabel("Service key");
  const isKey = async () => /^nrk_[0-9a-z]{26}_[0-9A-Za-z]{49}$/.test(await secretField.inputValue());
  await secretField.waitFor();
  await checkBothSizes(page, "key");
  const shown = [await isKey()];
  await page.getByRole("button", { name: "Done" }).press("Enter");
  await page.getByRole("button", { name: "Rotate Mail server" }).press("Enter");
  await page.getByRole("button", { name: "Rotate", exact: true }).press("Enter");
  await secretField.waitFor();
  shown.push(await isKey());
  await page.getByRole("button", { name: "Done" }).press("Enter");
  await checkBothSizes(page, "keys");
  await page.getByRole("button", { name: "Revoke Mail server" }).press("Enter");
  await page.getByRole("dialog").getByRole("button", { name: "Revoke", exact: true }).press("Enter");
  await page.locator("[data-key]").getByText("Revoked", { exact: true }).waitFor();
  return { shown, text: await page.locator("[data-key]").innerText() };
}

/** Invites people by a link, and revokes the invitation. Returns the link and the text of the invitation. */
async function inviteAndRevoke(page) {
  await navigate(page, "/adminInvitations");
  await page.getByText("No invitations").waitFor();
  await page.getByRole("button", { name: "Invite" }).press("Enter");
  await page.getByLabel("People").fill("5");
  await checkBothSizes(page, "invite");
  await page.getByRole("button", { name: "Create link" }).press("Enter");
  const link = page.getByRole("dialog").getByLabel("Link");
  await link.waitFor();
  const url = await link.inputValue();
  await page.getByRole("button", { name: "Done" }).press("Enter");
  await page.getByRole("button", { name: /^Revoke the invitation/ }).waitFor();
  await checkBothSizes(page, "invitations");
  await page.getByRole("button", { name: /^Revoke the invitation/ }).press("Enter");
  const row = page.locator("[data-invitation]");
  await row.getByText("Revoked").waitFor();
  return { isLink: url.includes("#invitation="), text: await row.innerText() };
}

/** Checks the screens in Japanese. Returns the sentences of the log. */
async function checkInJapanese() {
  const page = await open(tokens.ann, "/admin", { locale: "ja-JP" });
  await row(page, "ben").getByRole("button", { name: "Ben さんの権限" }).click();
  await checkBothSizes(page, "roles-ja");
  await page.keyboard.press("Escape");
  await page.getByRole("dialog").waitFor({ state: "detached" });
  await checkBothSizes(page, "users-ja");
  await navigate(page, "/adminAudit");
  await entries(page).nth(3).waitFor();
  await checkBothSizes(page, "audit-ja");
  for (const name of ["Keys", "Invitations"]) {
    await navigate(page, `/admin${name}`);
    await page.locator("[data-key], [data-invitation]").waitFor();
    await checkBothSizes(page, `${name.toLowerCase()}-ja`);
  }
  await navigate(page, "/adminAudit");
  await entries(page).nth(3).waitFor();
  return await entries(page).locator("p:first-child").allInnerTexts();
}

/** Max is no administrator. Returns the links to the administration that he sees. */
async function openWithoutRight() {
  const page = await open(tokens.max, "/admin");
  await page.getByText("Only administrators can open this screen").waitFor();
  return await page.getByRole("link", { name: "Admin" }).count();
}
