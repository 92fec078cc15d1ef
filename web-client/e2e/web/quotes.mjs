/**
 * Quotes in a real Chromium, by keyboard alone: Ben quotes Ann's message, which she then deletes, and a message that Ann
 * cannot read. Prints a report as one line of JSON.
 *
 * Standard input: {url, chromium, tokens: {ann, ben}, screenshots}.
 */
import { navigate, readInput } from "../browser.mjs";
import { actOnMessage, press, tabTo } from "../keyboard.mjs";
import { openScreenChecker } from "../screen-checker.mjs";

const { tokens, ...options } = readInput();
const { findings, run, open, checkVariants, close } = await openScreenChecker(options);

try {
  const topic = await createTopic(tokens.ann, "Rowers");
  await run(tokens.ben, "mutation ($id: ID!) { joinCommunity(communityId: $id) { id } }", {
    id: topic.community.id,
  });
  await post(tokens.ann, { topicId: topic.id, text: "Who rows on Sunday?" });
  await quoteHiddenMessage(topic);
  const ann = await open(tokens.ann, `/topic/${topic.id}`);
  const ben = await open(tokens.ben, `/topic/${topic.id}`);
  const report = { composed: await quote(ben) };
  report.seen = await texts(ann);
  await checkVariants(ann, "quotes");
  report.opened = await openQuote(ann);
  report.pasted = await pasteAddresses(ben, topic);
  report.afterDeletion = await deleteQuoted(ann, ben);
  console.log(JSON.stringify({ ...report, ...findings }));
} finally {
  await close();
}

/** Creates a community with a topic. Returns the topic with its community. */
async function createTopic(token, name, more = {}) {
  const create =
    "mutation ($input: CreateCommunityInput!) { created: createCommunity(input: $input) { id } }";
  const { created } = await run(token, create, { input: { name, ...more } });
  const query =
    "mutation ($input: CreateTopicInput!) { topic: createTopic(input: $input) { id community { id } } }";
  return (await run(token, query, { input: { communityId: created.id, title: "Boats" } })).topic;
}

async function post(token, input) {
  const query =
    "mutation ($input: PostMessageInput!) { posted: postMessage(input: $input) { id topicId timestamp } }";
  return (await run(token, query, { input })).posted;
}

/** Ben quotes a message of a private community, which Ann has not joined. */
async function quoteHiddenMessage(topic) {
  const hidden = await createTopic(tokens.ben, "Divers", { visibility: "PRIVATE" });
  const { id } = await post(tokens.ben, { topicId: hidden.id, text: "A wreck" });
  await post(tokens.ben, { topicId: topic.id, text: "Read this", quotedMessageId: id });
}

/** Returns the texts of the quotes that the person sees. */
async function texts(page) {
  await page.getByTestId("timeline").getByText("I do").waitFor();
  return await page.getByTestId("quote").allInnerTexts();
}

/** Ben quotes Ann's message, removes the quote, and quotes it again. Returns what the message field showed. */
async function quote(ben) {
  const composed = ben.getByTestId("composed-quote");
  await actOnMessage(ben, "Who rows on Sunday?", "button", "Quote");
  await press(ben, ben.getByRole("button", { name: "Remove quote" }), "Enter", { back: true });
  await composed.waitFor({ state: "detached" });
  await actOnMessage(ben, "Who rows on Sunday?", "button", "Quote");
  await checkVariants(ben, "quote-composed");
  const text = await composed.innerText();
  await tabTo(ben, ben.getByRole("textbox", { name: /^Message to/ }));
  await ben.keyboard.type("I do");
  await ben.keyboard.press("Enter");
  await composed.waitFor({ state: "detached" });
  return text;
}

/** Ann opens the quoted message from the quote. Returns the text of the message that is then highlighted. */
async function openQuote(ann) {
  await actOnMessage(ann, "I do", "link", "Who rows on Sunday?");
  const target = ann.locator(".permalink-target");
  await target.waitFor();
  return await target.locator("p.whitespace-pre-wrap").innerText();
}

/**
 * Ben pastes addresses: of a message, of a message that he may not read, and of another server. Then he quotes a message
 * in his first reply to another one. Returns what the fields and quotes show.
 */
async function pasteAddresses(ben, topic) {
  const secret = await createTopic(tokens.ann, "Divers", { visibility: "PRIVATE" });
  const hidden = await post(tokens.ann, { topicId: secret.id, text: "A secret" });
  const shown = await post(tokens.ann, { topicId: topic.id, text: "Meet here" });
  const parent = await post(tokens.ann, { topicId: topic.id, text: "Agreed?" });
  const [page] = ben.url().split("#");
  const address = (message) => `${page}#/topic/${message.topicId}/${message.timestamp}`;
  const field = ben.getByRole("textbox", { name: /^Message to/ });
  const refused = [address(hidden), `https://example.com/#/topic/${topic.id}/${shown.timestamp}`];
  const texts = [];
  for (const text of refused) {
    const answer = text.startsWith(page) && ben.waitForResponse(isLookup);
    await paste(ben, field, text);
    await answer;
    texts.push(await field.inputValue());
    await ben.keyboard.press("Control+A");
    await ben.keyboard.press("Delete");
  }
  await ben.keyboard.type("Read ");
  await paste(ben, field, address(shown));
  const composed = ben.getByTestId("composed-quote");
  const quotes = [await composed.innerText()];
  await ben.keyboard.type("this");
  const text = await field.inputValue();
  await ben.keyboard.press("Enter");
  await composed.waitFor({ state: "detached" });
  await navigate(ben, `/topic/${topic.id}/latest/${encodeURIComponent(parent.id)}`);
  const reply = ben.getByTestId("thread").getByRole("textbox", { name: "Reply" });
  await paste(ben, reply, address(shown));
  await composed.waitFor();
  await post(tokens.ann, { topicId: topic.id, replyTo: parent.id, text: "Yes" });
  await ben.getByTestId("thread").getByText("Yes").waitFor();
  quotes.push(await composed.innerText());
  await navigate(ben, `/topic/${topic.id}`);
  return { texts: texts.map((each, index) => each === refused[index]), text, quotes };
}

function isLookup(response) {
  return response.request().postData()?.includes("query MessageAt") ?? false;
}

async function paste(page, field, text) {
  await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
  await tabTo(page, field);
  await page.evaluate((copied) => navigator.clipboard.writeText(copied), text);
  await page.keyboard.press("Control+V");
}

/** Ann deletes her message. Returns the quotes that Ben sees then. */
async function deleteQuoted(ann, ben) {
  const message = ann.locator("[data-message]").filter({ hasText: "Who rows" }).first();
  await run(tokens.ann, "mutation ($id: ID!) { deleteMessage(id: $id) { id } }", {
    id: await message.getAttribute("data-message"),
  });
  await ben.getByTestId("quote").getByText("This message was deleted.").waitFor();
  return await ben.getByTestId("quote").allInnerTexts();
}
