/**
 * Local accounts in Chromium: the first administrator, an invitation, signing in, and another password. Prints a report
 * as one line of JSON.
 *
 * Standard input: {url, chromium, firstAdmin, mails, screenshots}. `mails` is the folder in which the worker stores
 * mails. The exit code is 1 when a step timed out.
 */
import { readdirSync, readFileSync } from "node:fs";
import { axeViolations, launch, overflow_px, readInput } from "./browser.mjs";

const { url, chromium, firstAdmin, mails, screenshots } = readInput();
const session = await launch(chromium);
const violations = [];
const overflows = [];
const PASSWORD = "beacon on the hill";
const OTHER_PASSWORD = "another beacon on the hill";

try {
  const report = {};
  const ada = await openWindow("en-US");
  report.firstAdmin = await becomeAdministrator(ada);
  report.usedLink = await openUsedLink();
  const invitation = await invite(ada);
  const bea = await openWindow("ja-JP");
  report.invited = await acceptInvitation(bea, invitation);
  report.changed = await changePassword(bea);
  report.signedIn = await signInAgain(bea);
  report.reset = await resetPassword(bea);
  const { requests, pageErrors } = session;
  console.log(JSON.stringify({ ...report, violations, overflows, requests, pageErrors }));
} finally {
  await session.browser.close();
}

async function openWindow(locale) {
  const context = await session.browser.newContext({ viewport: { width: 1280, height: 800 }, locale });
  context.on("request", (request) => session.requests.push(request.url()));
  const page = await context.newPage();
  page.on("pageerror", (error) => session.pageErrors.push(String(error)));
  page.setDefaultTimeout(45_000);
  return page;
}

/** Takes screenshots at two widths, and checks the page in both themes. */
async function look(page, name) {
  for (const theme of ["dark", "light"]) violations.push(...(await axeViolations(page, name, theme)));
  for (const [width, height] of [
    [360, 740],
    [1280, 800],
  ]) {
    await page.setViewportSize({ width, height });
    await page.screenshot({ path: `${screenshots}/${name}-${width}.png`, fullPage: true });
    const excess = await overflow_px(page);
    if (excess > 0) overflows.push(`${name} ${width}: ${excess} px`);
  }
}

async function viewer(page) {
  await page.getByRole("navigation", { name: /Screens|画面/ }).waitFor();
  return await page.evaluate(async () => {
    const response = await fetch("/graphql", {
      method: "POST",
      headers: { "content-type": "application/json", "noroshi-client": "test" },
      body: JSON.stringify({ query: "{ viewer { name roles } }" }),
    });
    const stored = [...Object.values(localStorage), ...Object.values(sessionStorage)].join(" ");
    return {
      ...(await response.json()).data.viewer,
      hasScriptableToken: /eyJ|__Host/.test(stored + document.cookie),
    };
  });
}

async function becomeAdministrator(page) {
  await page.goto(firstAdmin);
  await page.getByLabel("Mail address").fill("ada@example.org");
  await look(page, "first-admin");
  await page.getByLabel("Name", { exact: true }).fill("Ada");
  await page.getByLabel("New password", { exact: true }).fill("password123");
  await page.getByRole("button", { name: "Create account" }).click();
  const refusal = await page.getByRole("alert").innerText();
  await page.getByLabel("New password", { exact: true }).fill(PASSWORD);
  await page.getByRole("button", { name: "Create account" }).click();
  const address = page.url();
  return { ...(await viewer(page)), refusal, isLinkHidden: !address.includes("first-admin") };
}

async function openUsedLink() {
  const page = await openWindow("en-US");
  await page.goto(firstAdmin);
  await page.getByLabel("Mail address").fill("eve@example.org");
  await page.getByLabel("Name", { exact: true }).fill("Eve");
  await page.getByLabel("New password", { exact: true }).fill(PASSWORD);
  await page.getByRole("button", { name: "Create account" }).click();
  return await page.getByRole("alert").innerText();
}

async function invite(page) {
  return await page.evaluate(async () => {
    const query = `mutation { createInvitation(input: {role: OPERATOR, email: "bea@example.org"}) { url } }`;
    const response = await fetch("/graphql", {
      method: "POST",
      headers: { "content-type": "application/json", "noroshi-client": "test" },
      body: JSON.stringify({ query }),
    });
    return (await response.json()).data.createInvitation.url;
  });
}

async function acceptInvitation(page, invitation) {
  await page.goto(invitation);
  await page.getByLabel("名前", { exact: true }).fill("Bea");
  await look(page, "invitation");
  await page.getByLabel("新しいパスワード").fill(PASSWORD);
  await page.getByRole("button", { name: "アカウントを作成" }).click();
  return await viewer(page);
}

async function changePassword(page) {
  await page.getByRole("button", { name: "アカウント" }).click();
  await page.getByRole("button", { name: "パスワードの変更" }).click();
  await page.getByLabel("現在のパスワード").fill(PASSWORD);
  await page.getByLabel("新しいパスワード").fill(OTHER_PASSWORD);
  await look(page, "change-password");
  await page.getByRole("button", { name: "保存" }).click();
  return await page.getByText("パスワードを変更しました。").innerText();
}

async function signInAgain(page) {
  await page.getByRole("button", { name: "アカウント" }).click();
  await page.getByRole("button", { name: "サインアウト" }).click();
  await page.getByLabel("メールアドレス").fill("bea@example.org");
  await look(page, "sign-in");
  await page.getByLabel("パスワード").fill(PASSWORD);
  await page.getByRole("button", { name: "サインイン", exact: true }).first().click();
  const refusal = await page.getByRole("alert").innerText();
  await page.getByLabel("パスワード").fill(OTHER_PASSWORD);
  await page.getByRole("button", { name: "サインイン", exact: true }).first().click();
  const signedIn = await viewer(page);
  await page.reload();
  return { ...signedIn, refusal, afterReload: (await viewer(page)).name };
}

async function resetPassword(page) {
  const other = await openWindow("en-US");
  await other.goto(url);
  await other.getByRole("button", { name: "Forgot your password?" }).click();
  await other.getByLabel("Mail address").fill("bea@example.org");
  await look(other, "forgotten");
  await other.getByRole("button", { name: "Send link" }).click();
  await other.getByText("Check your mail").waitFor();
  await other.goto(await mailedLink("reset"));
  await other.getByLabel("New password", { exact: true }).fill(PASSWORD);
  await look(other, "reset");
  await other.getByRole("button", { name: "Save" }).click();
  await other.getByText("Your password was changed.").waitFor();
  // The session of the other window ends within 10 s.
  await page.getByLabel("メールアドレス").waitFor();
  await other.getByLabel("Mail address").fill("bea@example.org");
  await other.getByLabel("Password", { exact: true }).fill(PASSWORD);
  await other.getByRole("button", { name: "Sign in", exact: true }).first().click();
  return await viewer(other);
}

/** Waits for a mail with a link of this kind, and returns the link. */
async function mailedLink(kind) {
  for (;;) {
    for (const name of readdirSync(mails)) {
      if (!name.endsWith(".eml")) continue;
      const text = decode(readFileSync(`${mails}/${name}`, "utf8"));
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
