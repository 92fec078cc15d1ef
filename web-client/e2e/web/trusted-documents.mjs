/**
 * A person who may execute trusted documents only uses the web client in a real Chromium: joins a community, chats, and
 * opens the screens. Prints a report as one line of JSON.
 *
 * Standard input: {url, otherUrl, chromium, tokens: {ann, ben}}. The server at `otherUrl` has the same data, and executes
 * any document.
 */
import { launch, navigate, openPage, readInput, runOperation } from "../browser.mjs";

/** The screens, and the query that each of them sends when it is opened first. */
const SCREENS = {
  "/home": "HomeFeed",
  "/everyone": "LocalFeed",
  "/notifications": "Notifications",
  "/reactions": "ReactionsReceived",
  "/threads": "FollowedThreads",
  "/myData": "MyDataExport",
  "/search/people/ben": "SearchPeople",
  "/publishing": "ScheduledPosts",
  "/calls": "CallJobs",
  "/bounceRates": "BounceRates",
  "/admin": "OrganizationUsers",
  "/adminAudit": "AuditLog",
  "/adminErasures": "Erasures",
  "/adminHeld": "HeldPosts",
  "/adminInvitations": "Invitations",
  "/adminKeys": "ServiceKeys",
  "/adminReports": "ContentReports",
  "/adminSettings": "RetentionRules",
  "/adminStamps": "StampPacks",
  "/adminWebhooks": "Webhooks",
};

const { url, otherUrl, chromium, tokens } = readInput();
const session = await launch(chromium);
const { browser, pageErrors } = session;
const runAsBen = (query) => runOperation(otherUrl, tokens.ben, query);

try {
  const { topicId, communityId } = await createTopic();
  const ann = await openPage(session, url, tokens.ann, "/browse");
  await ann.getByRole("button", { name: "Join Hilltops" }).click();
  await ann.getByRole("region", { name: "Hilltops" }).waitFor();
  await navigate(ann, `/topic/${topicId}`);
  await chat(ann, topicId);
  const screens = { ...SCREENS, [`/community/${communityId}`]: "CommunityDetails" };
  const failures = [];
  for (const [path, name] of Object.entries(screens)) failures.push(...(await openScreen(ann, path, name)));
  const foreign = await runOperation(url, tokens.ann, "{ viewer { id } }").catch(({ message }) => message);
  console.log(JSON.stringify({ failures, foreign, pageErrors }));
} finally {
  await browser.close();
}

/** Ben creates a community with a topic, in which he writes. */
async function createTopic() {
  const { createCommunity } = await runAsBen(
    'mutation { createCommunity(input: {name: "Hilltops"}) { id } }',
  );
  const communityId = createCommunity.id;
  const { createTopic } = await runAsBen(
    `mutation { createTopic(input: {communityId: "${communityId}", title: "Watch"}) { id } }`,
  );
  await post(createTopic.id, "a fire on the hill");
  return { topicId: createTopic.id, communityId };
}

async function post(topicId, text) {
  await runAsBen(`mutation { postMessage(input: {topicId: "${topicId}", text: "${text}"}) { id } }`);
}

/** Ann reads a message, writes one, and receives the next one while she watches. */
async function chat(page, topicId) {
  const message = (text) => page.locator("[data-message]").filter({ hasText: text });
  await message("a fire on the hill").waitFor();
  const field = page.getByRole("textbox", { name: "Message to Watch" });
  await field.fill("I see it");
  await field.press("Enter");
  await page.locator("[data-pending]").waitFor({ state: "detached" });
  await message("I see it").waitFor();
  await post(topicId, "smoke in the west");
  await message("smoke in the west").waitFor();
}

/** Opens a screen, and returns the errors that the server answers to its first query. */
async function openScreen(page, path, name) {
  const answer = page.waitForResponse((response) => {
    const isOperation = new URL(response.url()).pathname === "/graphql";
    return isOperation && response.request().postDataJSON()?.operationName === name;
  });
  await navigate(page, path);
  const { errors = [] } = await (await answer).json();
  return errors.map(({ message }) => `${path}: ${message}`);
}
