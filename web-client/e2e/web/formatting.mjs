/**
 * Formatting in a real Chromium, by keyboard alone: Ann formats a message, writes a code block and a post, and reads
 * hostile texts. Prints a report as one line of JSON.
 *
 * Standard input: {url, chromium, tokens: {ann}, screenshots}.
 */
import { readInput } from "../browser.mjs";
import { press, tabTo } from "../keyboard.mjs";
import { openScreenChecker } from "../screen-checker.mjs";

const HOSTILE = `<img src=x onerror="document.title='x'"> [a](javascript:alert(1)) <b>b</b> [c](data:text/html,d)`;
const JAPANESE = "**重要**です。~~中止~~ [地図](https://example.org/map) `@ann`\n> 引用\n- 項目\n1. 一つ";

const { tokens, ...options } = readInput();
const { findings, run, open, checkVariants, close } = await openScreenChecker(options);

try {
  const topicId = await createTopic();
  await postMessage(topicId, HOSTILE);
  await postMessage(topicId, JAPANESE);
  const ann = await open(tokens.ann, `/topic/${topicId}`);
  const report = { typed: await formatMessage(ann), codeBlock: await writeCodeBlock(ann) };
  report.shown = await elementsOf(ann, "重要");
  report.hostile = await elementsOf(ann, "onerror");
  await checkVariants(ann, "formatting");
  report.help = await openHelp(ann);
  report.post = await readPost(ann);
  console.log(JSON.stringify({ ...report, ...findings }));
} finally {
  await close();
}

async function createTopic() {
  const community = await run(
    tokens.ann,
    'mutation { created: createCommunity(input: {name: "Printers"}) { id } }',
  );
  const query = "mutation ($input: CreateTopicInput!) { topic: createTopic(input: $input) { id } }";
  const input = { communityId: community.created.id, title: "Letters" };
  return (await run(tokens.ann, query, { input })).topic.id;
}

async function postMessage(topicId, text) {
  const query = "mutation ($input: PostMessageInput!) { posted: postMessage(input: $input) { id } }";
  await run(tokens.ann, query, { input: { topicId, text } });
}

function message(page, text) {
  return page.locator("[data-message]").filter({ hasText: text });
}

/** Makes two words bold and italic, removes the italic marker again, and sends. Returns the texts of the field. */
async function formatMessage(ann) {
  const field = ann.getByRole("textbox", { name: "Message to Letters" });
  await tabTo(ann, field);
  await ann.keyboard.type("heavy ");
  await ann.keyboard.press("Control+I");
  await ann.keyboard.type("type");
  const values = [await field.inputValue()];
  await ann.keyboard.press("Control+A");
  await ann.keyboard.press("Control+B");
  values.push(await field.inputValue());
  await ann.keyboard.press("Control+B");
  values.push(await field.inputValue());
  await ann.keyboard.press("Control+Z");
  values.push(await field.inputValue());
  await ann.keyboard.press("Enter");
  await message(ann, "heavy type").locator("strong em").waitFor();
  return values;
}

/** Writes a code block in which Enter adds lines. Returns its code. */
async function writeCodeBlock(ann) {
  for (const line of ["```js", "let a = *b*;", "", "  c();"]) {
    await ann.keyboard.type(line);
    await ann.keyboard.press("Enter");
  }
  await ann.keyboard.type("```");
  await ann.keyboard.press("Enter");
  const code = message(ann, "let a").locator("pre code");
  await code.waitFor();
  return await code.textContent();
}

/** Returns the names and texts of the elements of a message's text, and the addresses of its links. */
async function elementsOf(page, text) {
  return await message(page, text)
    .locator("p.whitespace-pre-wrap, blockquote, ul, ol")
    .locator("img, b, strong, s, code, a, li, em")
    .evaluateAll((elements) =>
      elements.map((element) => [
        element.tagName,
        element.textContent,
        element.getAttribute("href"),
        element.rel ?? "",
      ]),
    );
}

/** Opens and closes the help. Returns the number of its examples. */
async function openHelp(ann) {
  await press(ann, ann.getByRole("button", { name: "Formatting" }), "Enter", { back: true });
  const help = ann.getByRole("dialog", { name: "Formatting" });
  await help.waitFor();
  await checkVariants(ann, "formatting-help");
  const examples = await help.locator("tbody tr").count();
  await ann.keyboard.press("Escape");
  await help.waitFor({ state: "hidden" });
  return examples;
}

/** Opens Ann's post. Returns the bold words in it. */
async function readPost(ann) {
  const query = "mutation ($input: CreatePostInput!) { posted: createPost(input: $input) { id } }";
  const { posted } = await run(tokens.ann, query, { input: { text: "A **new** press\n> *quoted*" } });
  await ann.evaluate((id) => location.assign(`#/post/${id}`), posted.id);
  const bold = ann.locator("article strong");
  await bold.waitFor();
  return await bold.allInnerTexts();
}
