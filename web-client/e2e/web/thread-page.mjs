/**
 * What a person sees of a thread in a real Chromium: drafts and waiting replies when somebody else replies first. Prints
 * a report as one line of JSON.
 *
 * Standard input: {url, chromium, tokens: {ann, ben}, screenshots}. Ann writes by the API, and Ben reads and replies.
 */
import { readInput } from "../browser.mjs";
import { actOnMessage, type } from "../keyboard.mjs";
import { openScreenChecker } from "../screen-checker.mjs";

const { tokens, ...options } = readInput();
const { findings, run, open, close } = await openScreenChecker(options);

try {
  const topic = await createTopic();
  const report = {};
  report.draft = await keepDraft(topic);
  report.waiting = await keepWaitingReply(topic);
  console.log(JSON.stringify({ ...report, ...findings }));
} finally {
  await close();
}

/** Creates a topic of Ann that Ben has joined. Returns its id. */
async function createTopic() {
  const { created } = await run(
    tokens.ann,
    'mutation { created: createCommunity(input: { name: "Rowers" }) { id } }',
  );
  await run(tokens.ben, "mutation ($id: ID!) { joinCommunity(communityId: $id) { id } }", { id: created.id });
  const { topic } = await run(
    tokens.ann,
    'mutation ($id: ID!) { topic: createTopic(input: { communityId: $id, title: "Boats" }) { id } }',
    { id: created.id },
  );
  return topic.id;
}

async function post(topicId, text, replyTo = null) {
  const query =
    "mutation ($input: PostMessageInput!) { posted: postMessage(input: $input) { id topicId timestamp } }";
  return (await run(tokens.ann, query, { input: { topicId, text, replyTo } })).posted;
}

function thread(page) {
  return page.getByTestId("thread");
}

function message(place, text) {
  return place.locator("[data-message]").filter({ hasText: text });
}

function field(page) {
  return thread(page).getByRole("textbox", { name: "Reply" });
}

/** Ben writes while Ann starts the thread. Returns his text then, which he has continued without a click, and later. */
async function keepDraft(topic) {
  const { id } = await post(topic, "Who rows?");
  const ben = await open(tokens.ben, `/topic/${topic}`);
  await actOnMessage(ben, "Who rows?", "button", "Reply in thread");
  await type(ben, field(ben), "I row");
  await post(topic, "Nobody", id);
  await message(thread(ben), "Nobody").waitFor();
  await ben.keyboard.type(" on Sunday");
  const continued = await field(ben).inputValue();
  await ben.reload();
  await message(thread(ben), "Nobody").waitFor();
  return { continued, reloaded: await field(ben).inputValue() };
}

/** Ben's first reply waits for the server while Ann starts the thread. Returns the replies that he sees at the end. */
async function keepWaitingReply(topic) {
  const { id } = await post(topic, "Who steers?");
  const ben = await open(tokens.ben, `/topic/${topic}`);
  await actOnMessage(ben, "Who steers?", "button", "Reply in thread");
  await ben.route("**/graphql", (route) =>
    route.request().postData()?.includes("mutation PostMessage") ? route.abort() : route.fallback(),
  );
  await type(ben, field(ben), "I steer");
  await ben.keyboard.press("Enter");
  const pending = thread(ben).locator('[data-pending="waiting"]').filter({ hasText: "I steer" });
  await pending.waitFor();
  await post(topic, "Nobody steers", id);
  await message(thread(ben), "Nobody steers").waitFor();
  const waiting = await pending.count();
  await ben.unroute("**/graphql");
  await message(thread(ben), "I steer").waitFor();
  await thread(ben).locator("[data-pending]").waitFor({ state: "detached" });
  const replies = await thread(ben)
    .getByTestId("timeline")
    .locator("[data-message] p.whitespace-pre-wrap")
    .allInnerTexts();
  return { waiting, replies };
}
