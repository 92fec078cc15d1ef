/**
 * Local accounts in Chromium, by keyboard alone: the first administrator, invitations, a registration, signing in, and
 * changing and resetting a password. Prints a report as one line of JSON.
 *
 * Standard input: {url, chromium, firstAdmin, expired, mails, screenshots}. `firstAdmin` and `expired`, an invitation,
 * are links. `mails` is the folder in which the worker stores mails. The exit code is 1 when a step timed out.
 */
import { readdirSync, readFileSync } from "node:fs";
import { navigate, readInput, runInSession, waitForSignIn } from "../browser.mjs";
import { expectFocus, press, replaceText, tabTo } from "../keyboard.mjs";
import { openScreenChecker } from "../screen-checker.mjs";

const { firstAdmin, expired, mails, ...options } = readInput();
const { findings, openWindow, checkVariants, close } = await openScreenChecker(options);
const PASSWORD = "beacon on the hill";
const OTHER_PASSWORD = "another beacon on the hill";

/** For each password field: its type, its purpose for password managers, and whether it takes a pasted password. */
const passwordFields = [];

try {
  const report = {};
  const ada = await openWindow();
  report.firstAdmin = await becomeAdministrator(ada);
  report.usedLink = await openUsedLink();
  const invitation = await invite(ada, 'role: OPERATOR, email: "bea@example.org"');
  const bea = await openWindow("ja-JP");
  report.invited = await acceptInvitation(bea, invitation);
  report.proved = await acceptOpenInvitation(ada);
  report.registered = await register();
  report.notices = await openInvalidInvitations(ada, invitation);
  report.joined = await acceptWhileSignedIn(ada, bea);
  report.line = await readLine(ada);
  report.changed = await changePassword(bea);
  report.signedIn = await signInAgain(bea);
  report.reset = await resetPassword(bea);
  console.log(JSON.stringify({ ...report, passwordFields, ...findings }));
} finally {
  await close();
}

/** Waits until somebody is signed in. Returns the viewer, and whether scripts of the page can read a token. */
async function viewer(page) {
  await waitForSignIn(page);
  const { viewer } = await runInSession(page, "{ viewer { name roles } }");
  const readable = await page.evaluate(() =>
    [...Object.values(localStorage), ...Object.values(sessionStorage), document.cookie].join(" "),
  );
  return { ...viewer, hasScriptableToken: /eyJ|__Host/.test(readable) };
}

/** Pastes a password into a field in place of its text. */
async function pastePassword(page, field, password) {
  await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
  await page.evaluate((text) => navigator.clipboard.writeText(text), password);
  await press(page, field, "Control+A");
  await page.keyboard.press("Control+V");
  const [type, purpose] = await field.evaluate((input) => [input.type, input.autocomplete]);
  passwordFields.push({ type, purpose, isPasted: (await field.inputValue()) === password });
}

async function becomeAdministrator(page) {
  await page.goto(firstAdmin);
  await replaceText(page, page.getByLabel("Mail address"), "ada@example.org");
  await checkVariants(page, "first-admin");
  await replaceText(page, page.getByLabel("Name", { exact: true }), "Ada");
  await replaceText(page, page.getByLabel("New password", { exact: true }), "password123");
  await press(page, page.getByRole("button", { name: "Create account" }));
  const refusal = await page.getByRole("alert").innerText();
  await expectFocus(page, page.getByLabel("New password", { exact: true }));
  await pastePassword(page, page.getByLabel("New password", { exact: true }), PASSWORD);
  const handle = page.getByLabel("Handle");
  await tabTo(page, handle, { back: true });
  await page.keyboard.type("ada lee");
  await page.keyboard.press("Enter");
  const badHandle = await page.getByText("A handle has 1 to 30").innerText();
  await expectFocus(page, handle);
  await checkVariants(page, "bad-handle");
  await replaceText(page, handle, "@Ada_Lee");
  await press(page, page.getByRole("button", { name: "Create account" }));
  const address = page.url();
  const administrator = await viewer(page);
  const { handle: chosen } = (await runInSession(page, "{ viewer { handle } }")).viewer;
  return { ...administrator, refusal, badHandle, chosen, isLinkHidden: !address.includes("first-admin") };
}

async function openUsedLink() {
  const page = await openWindow();
  await page.goto(firstAdmin);
  await replaceText(page, page.getByLabel("Mail address"), "eve@example.org");
  await replaceText(page, page.getByLabel("Name", { exact: true }), "Eve");
  await replaceText(page, page.getByLabel("New password", { exact: true }), PASSWORD);
  await press(page, page.getByRole("button", { name: "Create account" }));
  return await page.getByRole("alert").innerText();
}

/** Returns the link of a new invitation. */
async function invite(page, input) {
  const query = `mutation { createInvitation(input: {${input}}) { url } }`;
  return (await runInSession(page, query)).createInvitation.url;
}

async function acceptInvitation(page, invitation) {
  await page.goto(invitation);
  await replaceText(page, page.getByLabel("名前", { exact: true }), "Bea");
  await checkVariants(page, "invitation");
  await pastePassword(page, page.getByLabel("新しいパスワード"), PASSWORD);
  await press(page, page.getByRole("button", { name: "アカウントを作成" }));
  return await viewer(page);
}

/** Dan opens an invitation for anybody, proves his mail address, and gets the account with the role. */
async function acceptOpenInvitation(ada) {
  const page = await openWindow();
  await page.goto(await invite(ada, "role: OPERATOR"));
  await replaceText(page, page.getByLabel("Mail address"), "dan@example.org");
  await checkVariants(page, "open-invitation");
  await press(page, page.getByRole("button", { name: "Send link" }));
  await page.getByText("Check your mail").waitFor();
  return await finishAccount(page, "Dan", "dan@example.org");
}

/** Eli registers without an invitation. */
async function register() {
  const page = await openWindow();
  await page.goto(options.url);
  await press(page, page.getByRole("button", { name: "Create an account" }));
  await expectFocus(page, page.getByLabel("Mail address"));
  await page.keyboard.type("eli@example.org");
  await checkVariants(page, "register");
  await press(page, page.getByRole("button", { name: "Send link" }));
  await page.getByText("Check your mail").waitFor();
  return await finishAccount(page, "Eli", "eli@example.org");
}

/** Opens the mailed link that proves the address, and creates the account. Returns the viewer. */
async function finishAccount(page, name, address) {
  await page.goto(await mailedLink("verification", address));
  await replaceText(page, page.getByLabel("Name", { exact: true }), name);
  await checkVariants(page, "verification");
  const isLinkHidden = !page.url().includes("verification");
  await pastePassword(page, page.getByLabel("New password", { exact: true }), PASSWORD);
  await press(page, page.getByRole("button", { name: "Create account" }));
  return { ...(await viewer(page)), isLinkHidden };
}

/** Opens invitations that are used up, withdrawn or expired. Returns what the page says about each. */
async function openInvalidInvitations(ada, usedUp) {
  const revoked = await invite(ada, "role: MEMBER");
  const { invitations } = await runInSession(ada, "{ invitations { id state } }");
  const { id } = invitations.find(({ state }) => state === "OPEN");
  await runInSession(ada, `mutation { revokeInvitation(id: "${id}") { id } }`);
  const notices = [];
  for (const [name, link] of Object.entries({ "used-up": usedUp, revoked, expired })) {
    const page = await openWindow();
    await page.goto(link);
    notices.push(await page.getByRole("alert").innerText());
    await checkVariants(page, name);
    await press(page, page.getByRole("button", { name: "Close this page" }));
    await page.getByLabel("Mail address").waitFor();
    await page.close();
  }
  return notices;
}

/** Bea, who has an account, accepts an invitation to a community. Waits until she is a member, and returns its name. */
async function acceptWhileSignedIn(ada, bea) {
  const create = 'mutation { createCommunity(input: {name: "Hilltops"}) { id } }';
  const { id } = (await runInSession(ada, create)).createCommunity;
  await bea.goto(await invite(ada, `communityId: "${id}"`));
  await bea.getByText("コミュニティ「Hilltops」").waitFor();
  await checkVariants(bea, "signed-in-invitation");
  await press(bea, bea.getByRole("button", { name: "招待を受ける" }));
  await bea.getByText("招待を受けました。").waitFor();
  for (;;) {
    const { communities } = await runInSession(bea, "{ communities(joined: true) { name } }");
    if (communities.length > 0) return communities[0].name;
    await bea.waitForTimeout(200);
  }
}

/** Returns what the settings say where no telephony provider is set. */
async function readLine(page) {
  await navigate(page, "/adminSettings");
  const note = page.getByTestId("no-line");
  await note.scrollIntoViewIfNeeded();
  await checkVariants(page, "no-line");
  return await note.innerText();
}

async function changePassword(page) {
  await press(page, page.getByRole("button", { name: "アカウント" }));
  await press(page, page.getByRole("button", { name: "パスワードの変更" }));
  await pastePassword(page, page.getByLabel("現在のパスワード"), PASSWORD);
  await pastePassword(page, page.getByLabel("新しいパスワード"), OTHER_PASSWORD);
  await checkVariants(page, "change-password");
  await press(page, page.getByRole("button", { name: "保存" }));
  return await page.getByText("パスワードを変更しました。").innerText();
}

async function signInAgain(page) {
  await press(page, page.getByRole("button", { name: "アカウント" }));
  await press(page, page.getByRole("button", { name: "サインアウト" }));
  await replaceText(page, page.getByLabel("メールアドレス"), "bea@example.org");
  await checkVariants(page, "sign-in");
  await replaceText(page, page.getByLabel("パスワード"), PASSWORD);
  const button = page.getByRole("button", { name: "サインイン", exact: true }).first();
  await press(page, button);
  const refusal = await page.getByRole("alert").innerText();
  await expectFocus(page, button);
  await checkVariants(page, "refused");
  await pastePassword(page, page.getByLabel("パスワード"), OTHER_PASSWORD);
  await press(page, page.getByRole("button", { name: "サインイン", exact: true }).first());
  const signedIn = await viewer(page);
  await page.reload();
  return { ...signedIn, refusal, afterReload: (await viewer(page)).name };
}

async function resetPassword(page) {
  const other = await openWindow();
  await other.goto(options.url);
  await press(other, other.getByRole("button", { name: "Forgot your password?" }));
  await expectFocus(other, other.getByLabel("Mail address"));
  await other.keyboard.type("bea@example.org");
  await checkVariants(other, "forgotten");
  await press(other, other.getByRole("button", { name: "Send link" }));
  await other.getByText("Check your mail").waitFor();
  await expectFocus(other, other.getByRole("button", { name: "Back" }));
  await checkVariants(other, "mailed");
  await other.goto(await mailedLink("reset", "bea@example.org"));
  await pastePassword(other, other.getByLabel("New password", { exact: true }), PASSWORD);
  await checkVariants(other, "reset");
  await press(other, other.getByRole("button", { name: "Save" }));
  await other.getByText("Your password was changed.").waitFor();
  // The session of the other window ends within 10 s.
  await page.getByLabel("メールアドレス").waitFor();
  await replaceText(other, other.getByLabel("Mail address"), "bea@example.org");
  await replaceText(other, other.getByLabel("Password", { exact: true }), PASSWORD);
  await press(other, other.getByRole("button", { name: "Sign in", exact: true }).first());
  return await viewer(other);
}

/** Waits for a mail to the address with a link of this kind, and returns the link. */
async function mailedLink(kind, address) {
  for (;;) {
    for (const name of readdirSync(mails)) {
      if (!name.endsWith(".eml")) continue;
      const mail = readFileSync(`${mails}/${name}`, "utf8");
      if (!new RegExp(`^To: .*<${address}>`, "m").test(mail)) continue;
      const text = decode(mail);
      const found = new RegExp(`\\S+#${kind}=[\\w-]{43}`).exec(text);
      if (found) return found[0];
    }
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}

/** Returns the text of a mail whose body may be quoted-printable or base64. */
function decode(mail) {
  const [head, body] = mail.split(/\r?\n\r?\n/, 2).length === 2 ? mail.split(/\r?\n\r?\n(.*)/s) : [mail, ""];
  if (/transfer-encoding: base64/i.test(head)) return Buffer.from(body, "base64").toString("utf8");
  return body.replace(/=\r?\n/g, "").replace(/=3D/g, "=");
}
