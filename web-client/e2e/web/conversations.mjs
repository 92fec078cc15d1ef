/**
 * Conversations of three people in a real Chromium, by keyboard alone. One request is accepted, another is declined. A
 * group is renamed and left, and a message is opened from the list of notifications. Prints a report as one line of
 * JSON.
 *
 * Standard input: {url, chromium, tokens: {ann, ben, cat}, screenshots}. Ann is an administrator. The
 * three share no community.
 */
import { navigate, readInput } from "../browser.mjs";
import { actOnMessage, press, replaceText, tabTo, type } from "../keyboard.mjs";
import { openScreenChecker } from "../screen-checker.mjs";

const { tokens, ...options } = readInput();
const { findings, run, open, checkVariants, close } = await openScreenChecker(options);

try {
  for (const token of Object.values(tokens)) await run(token, "{ viewer { id } }");
  const ann = await open(tokens.ann, "/chat");
  const ben = await open(tokens.ben, "/chat");
  const report = { asked: await askBen(ann), requested: await acceptRequest(ben) };
  report.answered = await readAnswer(ann, ben);
  report.reports = await openReports(ann);
  report.group = await startGroup(ann, ben);
  report.declined = await declineGroup();
  report.left = await leaveGroup(ann, ben);
  report.profile = await openFromProfile(ann);
  report.notification = await openFromNotification(ann);
  console.log(JSON.stringify({ ...report, ...findings }));
} finally {
  await close();
}

function conversations(page) {
  return page.getByRole("region", { name: "Direct messages" });
}

function field(page, name) {
  return page.getByRole("textbox", { name: `Message to ${name}` });
}

/** Chooses people for a new conversation, by their handles. */
async function choosePeople(page, ...names) {
  const to = page.getByRole("combobox", { name: "To" });
  for (const name of names) {
    await type(page, to, name.toLowerCase());
    await page.getByRole("option", { name }).waitFor();
    await page.keyboard.press("Enter");
    await page.getByRole("button", { name: `Remove ${name}` }).waitFor();
  }
}

/** Ann writes to Ben. Returns the note that says that he has not accepted yet. */
async function askBen(ann) {
  await press(ann, conversations(ann).getByRole("button", { name: "New message" }));
  await choosePeople(ann, "Ben");
  await checkVariants(ann, "new-message");
  await press(ann, ann.getByRole("button", { name: "Start" }));
  await type(ann, field(ann, "Ben"), "Are you there?");
  await ann.keyboard.press("Enter");
  await ann.locator("[data-message]").filter({ hasText: "Are you there?" }).waitFor();
  await checkVariants(ann, "conversation");
  await press(ann, ann.getByRole("button", { name: "Notifications from Ben" }));
  await tabTo(ann, ann.getByRole("radio", { name: "Everything", checked: true }));
  await ann.keyboard.press("ArrowUp");
  await ann.getByRole("radio", { name: "Nothing", checked: true }).waitFor();
  await ann.keyboard.press("Escape");
  return await ann.getByTestId("not-accepted").innerText();
}

/** Ben opens Ann's request and accepts it. Returns the text of the request. */
async function acceptRequest(ben) {
  await press(ben, conversations(ben).getByText("1 request"));
  await press(ben, conversations(ben).getByRole("link", { name: /^Ann/ }));
  await ben.locator("[data-message]").filter({ hasText: "Are you there?" }).waitFor();
  await checkVariants(ben, "request");
  const text = await ben.getByTestId("request").innerText();
  await press(ben, ben.getByRole("button", { name: "Accept" }));
  await type(ben, field(ben, "Ann"), "On my way");
  await ben.keyboard.press("Enter");
  return text;
}

/** Waits until Ann sees the answer and the note is gone, without a reload. Returns the texts of her conversations. */
async function readAnswer(ann, ben) {
  await ann.locator("[data-message]").filter({ hasText: "On my way" }).waitFor();
  await ann.getByTestId("not-accepted").waitFor({ state: "detached" });
  await ben.getByText("1 request").waitFor({ state: "detached" });
  return await conversations(ann).getByRole("link").allInnerTexts();
}

/**
 * Ann is about to report Ben's message, then his reply in its thread. Returns for each who decides, as the dialog says,
 * and how many buttons to delete the message Ann has.
 */
async function openReports(ann) {
  const message = ann.locator("[data-message]").filter({ hasText: "On my way" });
  const [replyTo] = await message.evaluateAll((all) => all.map((each) => each.dataset.message));
  const input = { topicId: ann.url().split("/").at(-1), text: "By boat", replyTo };
  await run(tokens.ben, "mutation ($input: PostMessageInput!) { postMessage(input: $input) { id } }", {
    input,
  });
  await actOnMessage(ann, "On my way", "button", "Report");
  await checkVariants(ann, "report-conversation");
  const reports = [await closeReport(ann, message)];
  await press(ann, ann.getByRole("button", { name: "1 reply" }));
  const thread = ann.getByTestId("thread");
  const reply = thread.locator("[data-message]").filter({ hasText: "By boat" });
  await reply.waitFor();
  await tabTo(ann, thread.getByRole("textbox", { name: "Reply" }));
  await tabTo(ann, reply, { back: true });
  await press(ann, reply.getByRole("button", { name: "Report" }));
  reports.push(await closeReport(ann, reply));
  await tabTo(ann, thread.getByRole("textbox", { name: "Reply" }));
  await ann.keyboard.press("Escape");
  await thread.waitFor({ state: "detached" });
  return reports;
}

async function closeReport(page, message) {
  const dialog = page.getByRole("dialog");
  const hint = await dialog.locator("form p").first().innerText();
  await page.keyboard.press("Escape");
  await dialog.waitFor({ state: "detached" });
  return { hint, deletions: await message.getByRole("button", { name: "Delete message" }).count() };
}

/** Ann starts a group with Ben and Cat, and renames it. Returns the people whom Ben sees in the renamed group. */
async function startGroup(ann, ben) {
  await press(ann, conversations(ann).getByRole("button", { name: "New message" }));
  await choosePeople(ann, "Ben", "Cat");
  await type(ann, ann.getByLabel("Name of the group (optional)"), "Boats");
  await checkVariants(ann, "new-group");
  await press(ann, ann.getByRole("button", { name: "Start" }));
  await type(ann, field(ann, "Boats"), "Who rows?");
  await ann.keyboard.press("Enter");
  await press(ben, conversations(ben).getByText("1 request"));
  await press(ben, conversations(ben).getByRole("link", { name: /^Boats/ }));
  await press(ben, ben.getByRole("button", { name: "Accept" }));
  await field(ben, "Boats").waitFor();
  await press(ann, ann.getByRole("button", { name: "Actions of the conversation" }));
  await checkVariants(ann, "conversation-actions");
  await press(ann, ann.getByRole("button", { name: "Rename group …" }));
  await replaceText(ann, ann.getByRole("dialog").getByLabel("Name of the group (optional)"), "Boats in May");
  await ann.keyboard.press("Enter");
  await ben.getByRole("heading", { level: 1 }).getByText("Boats in May").waitFor();
  await press(ben, ben.getByRole("button", { name: "People of the conversation" }));
  await checkVariants(ben, "conversation-people");
  const people = await ben.getByRole("dialog").getByRole("listitem").allInnerTexts();
  await ben.keyboard.press("Escape");
  return people;
}

/** Cat declines the request of the group. Returns how many conversations and requests are left. */
async function declineGroup() {
  const cat = await open(tokens.cat, "/chat");
  await press(cat, conversations(cat).getByText("1 request"));
  await press(cat, conversations(cat).getByRole("link", { name: /^Boats/ }));
  await press(cat, cat.getByRole("button", { name: "Decline" }));
  await cat.getByText("Declined. Nobody is notified.").waitFor();
  await cat.getByText("1 request").waitFor({ state: "detached" });
  const count = await conversations(cat).getByRole("link").count();
  await cat.close();
  return count;
}

/** Ben leaves the group. Waits until Ann sees that, and returns how many conversations remain in Ben's list. */
async function leaveGroup(ann, ben) {
  await press(ben, ben.getByRole("button", { name: "Actions of the conversation" }));
  await press(ben, ben.getByRole("button", { name: "Leave conversation …" }));
  await checkVariants(ben, "leave-conversation");
  await press(ben, ben.getByRole("dialog").getByRole("button", { name: "Leave", exact: true }));
  await ben.getByText("You left the conversation").waitFor();
  await conversations(ben)
    .getByRole("link", { name: /^Boats/ })
    .waitFor({ state: "detached" });
  await ann.getByText("Group of 2").waitFor();
  return await conversations(ben).getByRole("link").count();
}

/** Ann opens the conversation with Ben from his profile. Returns its title. */
async function openFromProfile(ann) {
  await navigate(ann, "/person/ben");
  await press(ann, ann.getByRole("button", { name: "Message Ben" }));
  await tabTo(ann, field(ann, "Ben"));
  return await ann.getByRole("heading", { level: 1 }).innerText();
}

/**
 * Ann opens the message that Ben has just sent from the list of notifications. Returns what the list said, and
 * whether she is then in their conversation. Waits until the list is empty, because she has read the message.
 */
async function openFromNotification(ann) {
  const conversation = ann.url();
  await navigate(ann, "/notifications");
  const input = { topicId: conversation.split("/").at(-1), text: "Back at six" };
  await run(tokens.ben, "mutation ($input: PostMessageInput!) { postMessage(input: $input) { id } }", {
    input,
  });
  const notification = ann.getByRole("link", { name: "Back at six" });
  await notification.waitFor();
  const text = await notification.innerText();
  const removed = await awaitRemoval(ann);
  await press(ann, notification);
  await ann.locator("[data-message]").filter({ hasText: "Back at six" }).waitFor();
  const isInConversation = ann.url() === conversation;
  await removed();
  await navigate(ann, "/notifications");
  await ann.getByText("Nothing new").waitFor();
  return { text, isInConversation };
}

/** Returns a function that waits until the page has received the event that a notification is gone. */
async function awaitRemoval(page) {
  const client = await page.context().newCDPSession(page);
  await client.send("Network.enable");
  const removed = new Promise((resolve) =>
    client.on("Network.webSocketFrameReceived", ({ response }) => {
      if (response.payloadData.includes('"NotificationRemoved"')) resolve();
    }),
  );
  return () => removed;
}
