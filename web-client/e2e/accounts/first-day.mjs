/**
 * The first day of an organization in Chromium, by keyboard alone and from empty data. The administrator founds a
 * community. Three invited people sign in: at a provider, with a password and with a passkey. A service posts by key.
 * Prints a report as one line of JSON.
 *
 * Standard input: {url, chromium, firstAdmin, screenshots}. The exit code is 1 when a step timed out.
 */
import { addAuthenticator, navigate, readInput, signInMethod, waitForSignIn } from "../browser.mjs";
import { press, type } from "../keyboard.mjs";
import { openScreenChecker } from "../screen-checker.mjs";

const { firstAdmin, ...options } = readInput();
const { findings, run, openWindow, checkVariants, close } = await openScreenChecker(options);
const PASSWORD = "beacon on the hill";

try {
  const ada = await openWindow();
  await ada.goto(firstAdmin);
  await createAccount(ada, "Ada", "ada@example.org");
  await foundCommunity(ada);
  const links = [
    await invite(ada, "", "Hilltops"),
    await invite(ada, "bea@example.org"),
    await invite(ada, "cyd@example.org"),
  ];
  const people = [
    await join("Ann Lee", links[0], signInAtProvider, { hasJoined: true }),
    await join("Bea", links[1], (page) => createAccount(page, "Bea")),
    await join("Cyd", links[2], createAccountWithPasskey),
  ];
  const secret = await issueKey(ada);
  for (const [name, page] of people) await post(page, `Hello from ${name}`);
  await postByKey(secret);
  const report = { posts: await readTopic(ada), methods: [] };
  for (const [, page] of people) report.methods.push(await signInMethod(page));
  console.log(JSON.stringify({ ...report, ...findings }));
} finally {
  await close();
}

async function createAccount(page, name, address) {
  if (address) await type(page, page.getByLabel("Mail address"), address);
  await type(page, page.getByLabel("Name", { exact: true }), name);
  await type(page, page.getByLabel("New password", { exact: true }), PASSWORD);
  await press(page, page.getByRole("button", { name: "Create account" }));
  await waitForSignIn(page);
}

async function createAccountWithPasskey(page) {
  await addAuthenticator(page);
  await type(page, page.getByLabel("Name", { exact: true }), "Cyd");
  await press(page, page.getByRole("button", { name: "Use a passkey instead of a password" }));
  await press(page, page.getByRole("button", { name: "Create account" }));
  await waitForSignIn(page);
}

async function signInAtProvider(page) {
  const button = page.getByRole("button", { name: /Sign in with/ }).first();
  await button.waitFor();
  await checkVariants(page, "invitation-provider");
  await press(page, button);
  await page.locator("input[name=login]").fill("ann");
  await page.locator("input[name=password]").fill("any");
  await page.getByRole("button", { name: "Sign-in" }).click();
  await page.getByRole("button", { name: "Continue" }).click();
  await waitForSignIn(page);
}

async function foundCommunity(page) {
  await navigate(page, "/chat");
  await press(page, page.getByRole("button", { name: "New community" }).first());
  await type(page, page.getByLabel("Name", { exact: true }), "Hilltops");
  await press(page, page.getByRole("dialog").getByRole("button", { name: "Create" }));
  await press(page, page.getByRole("button", { name: "New topic in Hilltops" }));
  await type(page, page.getByLabel("Title"), "Watch");
  await press(page, page.getByRole("dialog").getByRole("button", { name: "Create" }));
  await page.getByRole("textbox", { name: "Message to Watch" }).waitFor();
}

/** Returns the link of a new invitation for an address, or for anybody. With a community, people who accept join it. */
async function invite(page, address, community) {
  await navigate(page, "/adminInvitations");
  await press(page, page.getByRole("button", { name: "Invite" }));
  await type(page, page.getByLabel("Mail address"), address);
  if (community) await press(page, page.getByRole("dialog").getByLabel("Community"), community[0]);
  await press(page, page.getByRole("button", { name: "Create link" }));
  const link = await page.getByRole("dialog").getByLabel("Link").inputValue();
  await press(page, page.getByRole("button", { name: "Done" }));
  return link;
}

/** Opens a link of an invitation in a window of its own, and joins the community unless the invitation did. */
async function join(name, link, accept, { hasJoined = false } = {}) {
  const page = await openWindow();
  await page.goto(link);
  await accept(page);
  if (!hasJoined) {
    await navigate(page, "/browse");
    await page.getByText("Hilltops").first().waitFor();
    await press(page, page.getByRole("button", { name: /^Join/ }).first());
  }
  await navigate(page, "/chat");
  await press(page, page.getByRole("link", { name: "Watch" }).first());
  return [name, page];
}

async function post(page, text) {
  const field = page.getByRole("textbox", { name: "Message to Watch" });
  await type(page, field, text);
  await page.keyboard.press("Enter");
  await page.locator("[data-message]").getByText(text).waitFor();
}

async function issueKey(page) {
  await navigate(page, "/adminKeys");
  await press(page, page.getByRole("button", { name: "New key" }));
  await type(page, page.getByLabel("Name", { exact: true }), "Weather station");
  for (const scope of ["chat:read", "chat:write"])
    await press(page, page.getByRole("checkbox", { name: scope }), "Space");
  await press(page, page.getByRole("button", { name: "Create", exact: true }));
  const secret = await page.getByRole("dialog").getByLabel("Service key").inputValue();
  await press(page, page.getByRole("button", { name: "Done" }));
  return secret;
}

async function postByKey(secret) {
  const [{ id }] = (await run(secret, "{ communities { id } }")).communities;
  await run(secret, "mutation ($id: ID!) { joinCommunity(communityId: $id) { id } }", { id });
  const { communities } = await run(secret, "{ communities { topics { id } } }");
  const input = { topicId: communities[0].topics[0].id, text: "Wind from the west" };
  await run(secret, "mutation ($input: PostMessageInput!) { postMessage(input: $input) { id } }", { input });
}

/** Returns the posts as the administrator sees them. */
async function readTopic(page) {
  await navigate(page, "/chat");
  await press(page, page.getByRole("link", { name: "Watch" }).first());
  await page.locator("[data-message]").getByText("Wind from the west").waitFor();
  return await page.locator("[data-message]").allInnerTexts();
}
