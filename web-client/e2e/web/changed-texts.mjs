/**
 * Edited and deleted messages in a real Chromium: Ann edits and deletes a message that mentions Ben, in a topic that is
 * open nowhere. Ben sees it in the list of topics, in his notifications, in a search, and in a quote of another topic.
 * Then Ben accepts words of an input method with Enter. Prints a report as one line of JSON.
 *
 * Standard input: {url, chromium, tokens: {ann, ben}, screenshots}.
 */
import { readInput } from "../browser.mjs";
import { openScreenChecker } from "../screen-checker.mjs";

const { tokens, ...options } = readInput();
const { findings, run, open, close } = await openScreenChecker(options);

try {
  const community = await createCommunity();
  const boats = await createTopic(community, "Boats");
  const nets = await createTopic(community, "Nets");
  await post({ topicId: nets, text: "Nothing yet" });
  const { id } = await post({ topicId: boats, text: "@ben take the secret rope" });
  await post({ topicId: nets, text: "Read this", quotedMessageId: id });
  const places = await openPlaces(boats, nets);
  const report = { before: await textsOf(places, "secret") };
  await run(tokens.ann, "mutation ($id: ID!, $text: String!) { editMessage(id: $id, text: $text) { id } }", {
    id,
    text: "@ben take the public rope",
  });
  report.edited = await textsOf(places, "public");
  await run(tokens.ann, "mutation ($id: ID!) { deleteMessage(id: $id) { id } }", { id });
  report.deleted = await textsOf(places, "This message was deleted.");
  report.typed = await acceptWords(places);
  console.log(JSON.stringify({ ...report, ...findings }));
} finally {
  await close();
}

async function createCommunity() {
  const { created } = await run(
    tokens.ann,
    'mutation { created: createCommunity(input: { name: "Rowers" }) { id } }',
  );
  await run(tokens.ben, "mutation ($id: ID!) { joinCommunity(communityId: $id) { id } }", { id: created.id });
  return created.id;
}

async function createTopic(communityId, title) {
  const query = "mutation ($input: CreateTopicInput!) { topic: createTopic(input: $input) { id } }";
  return (await run(tokens.ann, query, { input: { communityId, title } })).topic.id;
}

async function post(input) {
  const query = "mutation ($input: PostMessageInput!) { posted: postMessage(input: $input) { id } }";
  return (await run(tokens.ann, query, { input })).posted;
}

/** Opens each screen that shows the message. Returns the element with its text, by the name of the screen. */
async function openPlaces(boats, nets) {
  const [chat, own, notifications, search] = await Promise.all([
    open(tokens.ben, `/topic/${nets}`),
    open(tokens.ann, `/topic/${nets}`),
    open(tokens.ben, "/notifications"),
    open(tokens.ben, "/search/messages/rope"),
  ]);
  return {
    sidebar: chat.locator(`[data-topic="${boats}"]`),
    sidebarOfAuthor: own.locator(`[data-topic="${boats}"]`),
    quote: chat.getByTestId("quote"),
    notification: notifications.locator(`a[href*="${boats}"]`).first(),
    match: search.locator("[data-match]").first(),
  };
}

/** Waits until each place shows the words. Returns the texts of all places. */
async function textsOf(places, words) {
  const entries = Object.entries(places).map(async ([name, place]) => {
    await place.filter({ hasText: words }).waitFor();
    return [name, await place.innerText()];
  });
  return Object.fromEntries(await Promise.all(entries));
}

/**
 * Ben types a message, and presses Enter as Safari sends it when a word is accepted, then as a person does. Returns the
 * field's text after each, when Ann has the message.
 */
async function acceptWords({ quote, sidebarOfAuthor }) {
  const field = quote.page().getByRole("textbox", { name: /^Message to/ });
  await field.fill("花火");
  await field.dispatchEvent("keydown", { key: "Enter", keyCode: 229, bubbles: true, cancelable: true });
  const accepted = await field.inputValue();
  await field.press("Enter");
  await sidebarOfAuthor.page().getByTestId("timeline").getByText("花火").waitFor();
  return { accepted, sent: await field.inputValue() };
}
