/**
 * Presence in a real Chromium, by keyboard alone: the dot of a person who is online, the line that says who is typing,
 * and a block. Then a person and the organization switch presence off. Prints a report as one line of JSON.
 *
 * Standard input: {url, chromium, tokens: {ann, bob}, screenshots}. Ann is an ADMIN.
 */
import { navigate, readInput } from "../browser.mjs";
import { press, type } from "../keyboard.mjs";
import { openScreenChecker } from "../screen-checker.mjs";

const { tokens, ...options } = readInput();
const { findings, run, open, checkVariants, close } = await openScreenChecker(options);

try {
  for (const token of Object.values(tokens)) await run(token, "{ viewer { id } }");
  const topic = await createTopic();
  const ann = await open(tokens.ann, `/topic/${topic}`);
  const bob = await open(tokens.bob, `/topic/${topic}`);
  await field(ann).waitFor();
  const report = { typing: await typeAsBob(ann, bob) };
  report.online = await dot(ann).first().count();
  await checkVariants(ann, "presence");
  report.typingAfterSending = await sendAsBob(ann, bob);
  report.profile = await seeProfile(ann);
  report.hidden = await hideBob(ann, bob);
  report.signals = await typeHidden(bob, topic);
  report.organization = await turnOff(ann);
  console.log(JSON.stringify({ ...report, ...findings }));
} finally {
  await close();
}

/** Creates a topic in a community of Ann and Bob, with a message of Bob's. Returns the topic's id. */
async function createTopic() {
  const create = 'mutation { done: createCommunity(input: { name: "Harbour" }) { id } }';
  const community = (await run(tokens.ann, create)).done.id;
  await run(tokens.bob, "mutation ($id: ID!) { joinCommunity(communityId: $id) { id } }", { id: community });
  const open =
    'mutation ($id: ID!) { done: createTopic(input: { communityId: $id, title: "Tides" }) { id } }';
  const topic = (await run(tokens.ann, open, { id: community })).done.id;
  const post = 'mutation ($id: ID!) { postMessage(input: { topicId: $id, text: "High at noon" }) { id } }';
  await run(tokens.bob, post, { id: topic });
  return topic;
}

function field(page) {
  return page.getByRole("textbox", { name: "Message to Tides" });
}

function dot(page) {
  return page.locator("[data-online=bob]");
}

/** Bob types. Returns what Ann reads below the messages, and what is announced to her. */
async function typeAsBob(ann, bob) {
  await type(bob, field(bob), "Low at");
  const line = ann.getByTestId("typing");
  await line.filter({ hasText: "typing" }).waitFor();
  await dot(ann).first().waitFor();
  return [await line.innerText(), await ann.getByRole("status").filter({ hasText: "typing" }).innerText()];
}

/** Bob sends his message. Returns the text of the line that said who is typing. */
async function sendAsBob(ann, bob) {
  await bob.keyboard.type(" six");
  await bob.keyboard.press("Enter");
  await ann.locator("[data-message]").filter({ hasText: "Low at six" }).waitFor();
  await ann.getByTestId("typing").filter({ hasNotText: "typing" }).waitFor();
  return await ann.getByTestId("typing").innerText();
}

/** Bob hides his presence. Returns whether his switch is off. The dot disappears for Ann. */
async function hideBob(ann, bob) {
  await navigate(bob, "/myData");
  const toggle = bob.getByRole("checkbox", { name: "Show others when I am online and typing" });
  await toggle.waitFor();
  await checkVariants(bob, "own-presence");
  await press(bob, toggle, "Space");
  await dot(ann).first().waitFor({ state: "detached" });
  return !(await toggle.isChecked());
}

/** Ann opens Bob's profile. Returns the number of dots there. */
async function seeProfile(page) {
  const path = new URL(page.url()).hash.slice(1);
  await navigate(page, "/person/bob");
  await page.locator("header").locator("[data-online=bob]").waitFor();
  await checkVariants(page, "profile-presence");
  const count = await dot(page).count();
  await navigate(page, path);
  await dot(page).first().waitFor();
  return count;
}

/** Bob types and sends a message while he hides. Returns the signals that his browser sends. */
async function typeHidden(page, topic) {
  const signals = [];
  page.on("request", (request) => request.postData()?.includes("SetTyping") && signals.push(request.url()));
  await navigate(page, `/topic/${topic}`);
  await field(page).waitFor();
  const settings = page.waitForResponse((response) =>
    response.request().postData()?.includes("query PresenceSettings"),
  );
  await type(page, field(page), "Unseen");
  await settings;
  await page.keyboard.press("Enter");
  await page.locator("[data-message]").filter({ hasText: "Unseen" }).waitFor();
  return signals.length;
}

/** Ann turns presence off for the organization. Returns what the API says. */
async function turnOff(ann) {
  await navigate(ann, "/adminSettings");
  const toggle = ann.getByRole("checkbox", { name: "Show who is online and typing" });
  await toggle.waitFor();
  await checkVariants(ann, "organization-presence");
  await press(ann, toggle, "Space");
  await ann.getByRole("checkbox", { checked: false }).waitFor();
  return (await run(tokens.bob, "{ presenceSettings { shown enabled } }")).presenceSettings;
}
