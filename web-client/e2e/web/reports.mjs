/**
 * Reports in a real Chromium, by keyboard alone: filed about three messages, a person and a post, decided by a moderator
 * and an administrator, each in another way. Prints a report as one line of JSON.
 *
 * Standard input: {url, chromium, tokens: {ann, ben, max, olga}, screenshots}. Ann is an administrator, Olga founds the
 * community, and Ben reports Max, his messages and his post, and a direct message of Olga.
 */
import { navigate, readInput } from "../browser.mjs";
import { actOnMessage, choose, press, tabTo, type } from "../keyboard.mjs";
import { openScreenChecker } from "../screen-checker.mjs";

const { tokens, ...options } = readInput();
const { findings, run, open, checkVariants, close } = await openScreenChecker(options);

try {
  for (const token of Object.values(tokens)) await run(token, "{ viewer { id } }");
  const { communityId, topicId } = await createCommunity();
  const olga = await open(tokens.olga, `/community/${communityId}/reports`);
  await olga.getByText("No reports").waitFor();
  const ben = await open(tokens.ben, `/topic/${topicId}`);
  const report = { hint: await reportMessage(ben) };
  report.queue = await decideMessage(olga);
  report.banned = await banAuthor(ben, olga, communityId);
  await reportPerson(ben);
  const ann = await open(tokens.ann, "/adminReports", { locale: "ja-JP" });
  report.warned = await warnPerson(ann);
  report.dismissed = await dismissPost(ben, ann);
  report.context = await dismissDirectMessage(ann);
  report.notified = await openNotifications(ben);
  console.log(JSON.stringify({ ...report, ...findings }));
} finally {
  await close();
}

async function createCommunity() {
  const { createCommunity } = await run(
    tokens.olga,
    'mutation { createCommunity(input: {name: "Hilltops"}) { id } }',
  );
  const communityId = createCommunity.id;
  for (const token of [tokens.ben, tokens.max])
    await run(token, `mutation { joinCommunity(communityId: "${communityId}") { id } }`);
  const topic = `mutation { createTopic(input: {communityId: "${communityId}", title: "Watch"}) { id } }`;
  const topicId = (await run(tokens.olga, topic)).createTopic.id;
  for (const text of ["buy boots", "buy shoes"])
    await run(tokens.max, `mutation { postMessage(input: {topicId: "${topicId}", text: "${text}"}) { id } }`);
  await run(tokens.max, 'mutation { createPost(input: {text: "Cheap torches"}) { id } }');
  return { communityId, topicId };
}

/** Fills in the dialog and sends the report. Returns the text of the dialog. */
async function sendReport(page, reason, name) {
  const dialog = page.getByRole("dialog");
  const text = await dialog.innerText();
  await choose(page, dialog.getByLabel("Reason"), reason);
  await type(page, dialog.getByRole("textbox"), "This is not what the topic is for.");
  await checkVariants(page, name);
  await press(page, dialog.getByRole("button", { name: "Send report" }));
  await dialog.waitFor({ state: "detached" });
  return text;
}

async function reportMessage(page) {
  await actOnMessage(page, "buy shoes", "button", "Report");
  return await sendReport(page, "Spam", "report");
}

/** Olga sees the report without a reload and removes the message. Returns the text of the report. */
async function decideMessage(page) {
  const row = page.locator("[data-report]");
  await row.waitFor();
  const text = await row.innerText();
  await press(page, row.getByRole("button", { name: /^Decide/ }));
  const dialog = page.getByRole("dialog");
  await chooseRadio(page, dialog, /Remove the content/);
  await type(page, dialog.getByRole("textbox"), "No advertising here");
  await checkVariants(page, "decide");
  await press(page, dialog.getByRole("button", { name: "Decide", exact: true }));
  await row.waitFor({ state: "detached" });
  await press(page, page.getByRole("button", { name: "Decided" }));
  await row.getByText("No advertising here").waitFor();
  await checkVariants(page, "decided");
  return text;
}

/** Ben reports another message, and Olga bans its author for a week. Returns the report, and whether the ban ends. */
async function banAuthor(ben, olga, communityId) {
  await actOnMessage(ben, "buy boots", "button", "Report");
  await sendReport(ben, "Spam", "report-again");
  await press(olga, olga.getByRole("button", { name: "Open", exact: true }), "Enter", { back: true });
  const row = olga.locator("[data-report]").filter({ hasText: "buy boots" });
  await press(olga, row.getByRole("button", { name: /^Decide/ }));
  const dialog = olga.getByRole("dialog");
  await chooseRadio(olga, dialog, /Ban from the community/);
  await choose(olga, dialog.getByLabel("Ends", { exact: true }), "7 days");
  await type(olga, dialog.getByRole("textbox"), "Advertising again");
  await checkVariants(olga, "decide-ban");
  await press(olga, dialog.getByRole("button", { name: "Decide", exact: true }));
  await row.waitFor({ state: "detached" });
  await press(olga, olga.getByRole("button", { name: "Decided" }));
  await row.getByText("Banned", { exact: true }).waitFor();
  const query = `{ communityBans(communityId: "${communityId}") { user { id } until } }`;
  const [{ user, until }] = (await run(tokens.olga, query)).communityBans;
  return { user: user.id, hasEnd: until !== null };
}

/** Chooses one of the radio buttons: Tab goes to the first one, arrows to the others. */
async function chooseRadio(page, dialog, name) {
  const radio = dialog.getByRole("radio", { name });
  await tabTo(page, dialog.getByRole("radio").first());
  for (let presses = 0; presses < 5 && !(await radio.isChecked()); presses++)
    await page.keyboard.press("ArrowDown");
}

async function reportPerson(page) {
  await navigate(page, "/person/max");
  await press(page, page.getByRole("button", { name: "Report Max" }));
  await sendReport(page, "Harassment", "report-person");
}

/** Ann warns the person, in Japanese. Returns the text of the report. */
async function warnPerson(page) {
  return await decideInJapanese(page, /警告/, "Please stop.", "warn-ja");
}

/** Ben reports a post, and Ann dismisses the report. Returns the text of the decided report. */
async function dismissPost(ben, ann) {
  await navigate(ben, "/person/max");
  await press(ben, ben.getByRole("button", { name: "Report the post of Max" }));
  await sendReport(ben, "Something else", "report-post");
  await decideInJapanese(ann, /却下/, "Not advertising", "dismiss-ja");
  await press(ann, ann.getByRole("button", { name: "判断済み" }));
  const row = ann.locator("[data-report]").filter({ hasText: "Cheap torches" });
  await row.waitFor();
  await checkVariants(ann, "decided-ja");
  return await row.innerText();
}

/** Ben reports a direct message of Olga, and Ann dismisses the report. Returns the texts of the messages before it. */
async function dismissDirectMessage(ann) {
  const started = await run(tokens.ben, 'mutation { startConversation(input: {userIds: ["olga"]}) { id } }');
  const send = `mutation ($text: String!) {
    postMessage(input: {topicId: "${started.startConversation.id}", text: $text}) { id }
  }`;
  const ids = [];
  for (const text of ["Where are you?", "Answer me", "You will regret it"])
    ids.push((await run(tokens.olga, send, { text })).postMessage.id);
  await run(tokens.olga, `mutation { deleteMessage(id: "${ids[0]}") { id } }`);
  const report = `reportContent(subject: MESSAGE, subjectId: "${ids[2]}", category: HARASSMENT)`;
  await run(tokens.ben, `mutation { ${report} }`);
  await press(ann, ann.getByRole("button", { name: "未対応", exact: true }), "Enter", { back: true });
  const before = ann.getByRole("list", { name: "会話でこの前に送られたメッセージ" }).getByRole("listitem");
  await before.first().waitFor();
  const texts = await before.allInnerTexts();
  await decideInJapanese(ann, /却下/, "A quarrel", "dismiss-direct-ja");
  return texts;
}

/** Ann decides the only open report. Returns the text of the report. */
async function decideInJapanese(page, decision, note, name) {
  const row = page.locator("[data-report]");
  await row.waitFor();
  const text = await row.innerText();
  await press(page, row.getByRole("button", { name: /^判断する/ }));
  const dialog = page.getByRole("dialog");
  await chooseRadio(page, dialog, decision);
  await type(page, dialog.getByRole("textbox"), note);
  await checkVariants(page, name);
  await press(page, dialog.getByRole("button", { name: "決定" }));
  await row.waitFor({ state: "detached" });
  return text;
}

/** Returns how many notifications of decisions Ben has, after Max has read the warning. */
async function openNotifications(ben) {
  await navigate(ben, "/notifications");
  const decisions = ben.getByText("Moderators decided about your report");
  await decisions.nth(4).waitFor();
  const max = await open(tokens.max, "/notifications");
  await max.getByText("Please stop.").waitFor();
  await checkVariants(max, "warning");
  return await decisions.count();
}
