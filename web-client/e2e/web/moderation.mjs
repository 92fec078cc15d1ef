/**
 * Moderation of a community in a real Chromium, by keyboard alone: roles, mutes, bans, deleted and pinned messages.
 * Then requests to join, settings of topics and of the community, the archive, and a new owner. Prints a report as one
 * line of JSON.
 *
 * Standard input: {url, chromium, tokens: {olga, mia, ben}, screenshots}. Olga founds the community.
 */
import { navigate, readInput } from "../browser.mjs";
import { actOnMessage, choose, expectFocus, focusMessage, press, type } from "../keyboard.mjs";
import { openScreenChecker } from "../screen-checker.mjs";

const APPROVE = `mutation ($communityId: ID!) {
  decideJoinRequest(communityId: $communityId, userId: "ben", approve: true) { id }
}`;
const POST = "mutation ($input: PostMessageInput!) { postMessage(input: $input) { id } }";

const { tokens, ...options } = readInput();
const { findings, run, open, checkVariants, close } = await openScreenChecker(options);

try {
  const { communityId, topicId } = await createCommunity();
  const ben = await open(tokens.ben, `/topic/${topicId}`);
  const report = { appointed: await appoint(topicId) };
  const mia = await open(tokens.mia, `/topic/${topicId}`);
  report.muted = await mute(mia, ben);
  report.deleted = await deleteMessage(mia, ben, topicId);
  report.banned = await ban(mia, ben, communityId);
  report.bans = await liftBan(mia, communityId);
  report.joined = await approveRequest(mia, ben, communityId);
  report.returned = await returnAfterKick(mia, ben, communityId, topicId);
  report.memberActions = await openAsMember(ben, communityId);
  report.pinned = await pin(mia, ben, topicId);
  report.acts = await offeredActs(mia, topicId);
  report.topic = await changeTopic(mia, ben, communityId, topicId);
  report.slowed = await slowDown(mia, ben);
  report.archived = await archive(ben, communityId, topicId);
  report.handedOver = await handOver(mia, communityId);
  console.log(JSON.stringify({ ...report, ...findings }));
} finally {
  await close();
}

/** Olga creates a community with a topic, in which Ben posts. */
async function createCommunity() {
  const input = '{name: "Hilltops", description: "Who keeps which fire."}';
  const { createCommunity } = await run(tokens.olga, `mutation { createCommunity(input: ${input}) { id } }`);
  const communityId = createCommunity.id;
  for (const token of [tokens.mia, tokens.ben])
    await run(token, `mutation { joinCommunity(communityId: "${communityId}") { id } }`);
  const topic = `mutation { createTopic(input: {communityId: "${communityId}", title: "Watch"}) { id } }`;
  const topicId = (await run(tokens.olga, topic)).createTopic.id;
  await run(tokens.ben, `mutation { postMessage(input: {topicId: "${topicId}", text: "buy shoes"}) { id } }`);
  return { communityId, topicId };
}

function member(page, id) {
  return page.locator(`[data-member="${id}"]`);
}

/** Opens the menu of a person. */
async function openMenu(page, id, name) {
  await press(page, member(page, id).getByRole("button", { name: `Actions for ${name}` }));
  await page.getByRole("dialog", { name: `Actions for ${name}` }).waitFor();
}

async function chooseAction(page, id, name, action) {
  await openMenu(page, id, name);
  await press(page, page.getByRole("button", { name: action, exact: true }));
}

/** Olga makes Mia a moderator, and sets that people join the community by request. Returns the text of Mia's row. */
async function appoint(topicId) {
  const page = await open(tokens.olga, `/topic/${topicId}`);
  await press(page, page.getByRole("link", { name: "Members of Hilltops" }));
  await member(page, "mia").waitFor();
  await openMenu(page, "mia", "Mia");
  await checkVariants(page, "members");
  await press(page, page.getByRole("button", { name: "Make moderator" }));
  await member(page, "mia").getByText("Moderator").waitFor();
  const text = await member(page, "mia").innerText();
  await press(page, page.getByRole("link", { name: "Settings", exact: true }));
  // Tab goes to the chosen radio button, and an arrow to the next one.
  await press(page, page.getByRole("radio", { name: /Public/ }), "ArrowDown");
  await checkVariants(page, "settings");
  await press(page, page.getByRole("button", { name: "Save" }));
  await page.getByText("Settings saved").waitFor();
  await page.close();
  return text;
}

function message(page, text) {
  return page.locator("[data-message]").filter({ hasText: text });
}

/** Mia goes from Ben's message to his row, and mutes him. Returns what Ben sees instead of the message field. */
async function mute(mia, ben) {
  await actOnMessage(mia, "buy shoes", "link", "Moderate Ben");
  await mia.getByRole("group", { name: "Find a person" }).getByText("Ben").waitFor();
  await chooseAction(mia, "ben", "Ben", "Mute …");
  const dialog = mia.getByRole("dialog", { name: "Mute Ben" });
  await choose(mia, dialog.getByLabel("Duration"), "10 minutes");
  await checkVariants(mia, "mute");
  await press(mia, dialog.getByRole("button", { name: "Mute", exact: true }));
  await member(mia, "ben").getByText("Muted until").waitFor();
  await expectFocus(mia, member(mia, "ben").getByRole("button", { name: "Actions for Ben" }));
  const field = ben.getByRole("textbox", { name: "Message to Watch" });
  await type(ben, field, "more shoes");
  await ben.keyboard.press("Enter");
  await ben.getByTestId("muted").waitFor();
  await checkVariants(ben, "muted");
  return await ben.getByTestId("muted").innerText();
}

/** Mia unmutes Ben and deletes his message. Returns whether the dialog says that the deletion is recorded. */
async function deleteMessage(mia, ben, topicId) {
  await chooseAction(mia, "ben", "Ben", "Unmute");
  await member(mia, "ben").getByText("Muted until").waitFor({ state: "detached" });
  await navigate(mia, `/topic/${topicId}`);
  await actOnMessage(mia, "buy shoes", "button", "Delete message");
  const dialog = mia.getByRole("dialog", { name: "Delete message" });
  const question = await dialog.innerText();
  await press(mia, dialog.getByRole("button", { name: "Delete", exact: true }));
  await ben.getByTestId("timeline").getByText("This message was deleted.").waitFor();
  return { isRecorded: question.includes("recorded with your name") };
}

/** Mia bans Ben. Returns whether the dialog accepts an empty reason, and what Ben sees after he asks to join again. */
async function ban(mia, ben, communityId) {
  await navigate(mia, `/community/${communityId}`);
  await member(mia, "ben").waitFor();
  await chooseAction(mia, "ben", "Ben", "Ban …");
  const dialog = mia.getByRole("dialog", { name: "Ban Ben" });
  const canSubmitWithoutReason = await dialog.getByRole("button", { name: "Ban", exact: true }).isEnabled();
  await type(mia, dialog.getByLabel("Reason"), "Sells shoes in every topic");
  await choose(mia, dialog.getByLabel("Ends"), "7 days");
  await checkVariants(mia, "ban");
  await press(mia, dialog.getByLabel("Reason"), "Enter", { back: true });
  await member(mia, "ben").waitFor({ state: "detached" });
  await ben.getByText("You are no longer a member of Hilltops").waitFor();
  await ben.getByRole("region", { name: "Hilltops" }).waitFor({ state: "detached" });
  await checkVariants(ben, "removed");
  await press(ben, ben.getByRole("button", { name: "Ask to join" }));
  await press(ben, ben.getByRole("dialog").getByRole("button", { name: "Ask to join", exact: true }));
  await ben.getByRole("alert").getByText("You can join again after").waitFor();
  await checkVariants(ben, "banned");
  return { canSubmitWithoutReason, text: await ben.getByRole("alert").innerText() };
}

/** Returns the text of the ban, and how many bans there are after Mia has lifted it. */
async function liftBan(mia, communityId) {
  await navigate(mia, `/community/${communityId}/bans`);
  const row = mia.locator('[data-ban="ben"]');
  await row.waitFor();
  const text = await row.innerText();
  await checkVariants(mia, "bans");
  await press(mia, row.getByRole("button", { name: "Lift ban of Ben" }));
  await mia.getByText("Nobody is banned").waitFor();
  return { text, count: await mia.locator("[data-ban]").count() };
}

/**
 * Ben asks to join, and Mia approves. Waits until Ben's sidebar shows the community and he is notified. Returns the
 * text of the request.
 */
async function approveRequest(mia, ben, communityId) {
  await navigate(ben, "/browse");
  const opener = ben.getByRole("button", { name: "Ask to join Hilltops" });
  await press(ben, opener);
  await ben.keyboard.type("No more shoes, promised");
  await checkVariants(ben, "ask");
  await press(ben, ben.getByRole("dialog").getByRole("button", { name: "Ask to join", exact: true }));
  await ben.getByText("Your request was sent").waitFor();
  await expectFocus(ben, opener);
  await navigate(mia, `/community/${communityId}/requests`);
  const row = mia.locator('[data-request="ben"]');
  await row.waitFor();
  const text = await row.innerText();
  await checkVariants(mia, "requests");
  await press(mia, row.getByRole("button", { name: "Approve Ben" }));
  await mia.getByText("No requests").waitFor();
  await ben.getByRole("navigation", { name: "Chat" }).getByRole("region", { name: "Hilltops" }).waitFor();
  await navigate(ben, "/notifications");
  await ben.getByText("Mia made you a member of Hilltops").waitFor();
  return text;
}

/** Mia kicks Ben, who asks to join from the topic. Returns whether he can write there after Mia has approved. */
async function returnAfterKick(mia, ben, communityId, topicId) {
  await navigate(ben, `/topic/${topicId}`);
  await navigate(mia, `/community/${communityId}`);
  await chooseAction(mia, "ben", "Ben", "Remove …");
  await checkVariants(mia, "kick");
  await press(mia, mia.getByRole("dialog").getByRole("button", { name: "Remove", exact: true }));
  await press(ben, ben.getByRole("button", { name: "Ask to join" }));
  const dialog = ben.getByRole("dialog");
  await press(ben, dialog.getByRole("button", { name: "Ask to join", exact: true }));
  await dialog.waitFor({ state: "detached" });
  await run(tokens.mia, APPROVE, { communityId });
  const field = ben.getByRole("textbox", { name: "Message to Watch" });
  await field.waitFor();
  return await field.isEnabled();
}

/** Returns how many menus of actions on people a member sees, and which sections of the community. */
async function openAsMember(ben, communityId) {
  await navigate(ben, `/community/${communityId}`);
  await member(ben, "olga").waitFor();
  const sections = ben.getByRole("navigation", { name: "Sections of the community" });
  return {
    actions: await ben.getByRole("button", { name: /^Actions for/ }).count(),
    sections: await sections.getByRole("link").allInnerTexts(),
  };
}

/** Returns a moderator's actions that Mia can choose on messages of Ben and of Olga, who owns the community. */
async function offeredActs(mia, topicId) {
  await run(tokens.olga, POST, { input: { topicId, text: "Well done" } });
  await navigate(mia, `/topic/${topicId}`);
  const acts = {};
  for (const [author, text] of Object.entries({ ben: "The north fire", olga: "Well done" })) {
    const message = await focusMessage(mia, text);
    await message.getByRole("button", { name: "Report" }).waitFor();
    const button = message.getByRole("button", { name: /^(Delete|Pin) message/ });
    const link = message.getByRole("link", { name: /^Moderate/ });
    const labels = await button.or(link).evaluateAll((all) => all.map((each) => each.ariaLabel));
    acts[author] = labels.sort();
  }
  return acts;
}

/** Mia pins a message and removes the pin. Returns the list of pins that Ben sees, and how many he can unpin. */
async function pin(mia, ben, topicId) {
  await run(tokens.ben, POST, { input: { topicId, text: "The north fire is lit" } });
  await navigate(mia, `/topic/${topicId}`);
  await navigate(ben, `/topic/${topicId}`);
  await message(mia, "The north fire").waitFor();
  await actOnMessage(mia, "The north fire", "button", "Pin message");
  await press(ben, ben.getByTestId("pins"));
  await checkVariants(ben, "pins");
  const dialog = ben.getByRole("dialog", { name: "Pinned messages" });
  const text = await dialog.innerText();
  const ownButtons = await dialog.getByRole("button", { name: /^Unpin/ }).count();
  await ben.keyboard.press("Escape");
  await expectFocus(ben, ben.getByTestId("pins"));
  await press(mia, mia.getByTestId("pins"));
  await press(mia, mia.getByRole("button", { name: "Unpin the message of Ben" }));
  await mia.keyboard.press("Escape");
  await ben.getByTestId("pins").waitFor({ state: "detached" });
  return { text, ownButtons };
}

/** Chooses an action in the menu of the topic's settings. */
async function openTopicSetting(page, action) {
  await press(page, page.getByRole("button", { name: "Settings of the topic" }));
  await press(page, page.getByRole("button", { name: action }));
}

/**
 * Mia renames and archives the topic, and reopens it. Ben sees each change without a reload, and finds the archived
 * topic in the community's settings. Returns the note about the archive, and whether Ben is still in the topic.
 */
async function changeTopic(mia, ben, communityId, topicId) {
  const heading = ben.getByRole("heading", { level: 1 });
  await openTopicSetting(mia, "Rename topic …");
  await press(mia, mia.getByRole("dialog").getByLabel("Title"), "Control+A");
  await mia.keyboard.type("Night watch");
  await checkVariants(mia, "rename-topic");
  await mia.keyboard.press("Enter");
  await heading.getByText("Night watch").waitFor();
  await expectFocus(mia, mia.getByRole("button", { name: "Settings of the topic" }));
  await ben.getByRole("region", { name: "Hilltops" }).getByText("Night watch").waitFor();
  await openTopicSetting(mia, "Archive topic …");
  await checkVariants(mia, "archive-topic");
  await press(mia, mia.getByRole("dialog").getByRole("button", { name: "Archive", exact: true }));
  const note = ben.getByTestId("archived");
  await note.waitFor();
  await ben.getByRole("region", { name: "Hilltops" }).getByText("Night watch").waitFor({ state: "detached" });
  await checkVariants(ben, "archived-topic");
  const text = await note.innerText();
  await navigate(ben, `/community/${communityId}/settings`);
  await press(ben, ben.getByText("Archived topics"));
  await ben
    .getByRole("list", { name: "Archived topics" })
    .getByRole("link", { name: "Night watch" })
    .waitFor();
  await checkVariants(ben, "archived-topics");
  await press(ben, ben.getByRole("list", { name: "Archived topics" }).getByRole("link"));
  await note.waitFor();
  await openTopicSetting(mia, "Reopen topic");
  await note.waitFor({ state: "detached" });
  await ben.getByRole("region", { name: "Hilltops" }).getByText("Night watch").waitFor();
  return { text, isStillOnPage: ben.url().includes(topicId) };
}

/** Mia sets the slow mode. Returns what Ben reads after a message, and whether he can send another. */
async function slowDown(mia, ben) {
  await openTopicSetting(mia, "Slow mode …");
  await choose(mia, mia.getByRole("dialog").getByLabel("Wait between two messages"), "1 hr");
  await checkVariants(mia, "slow-mode");
  await press(mia, mia.getByRole("dialog").getByRole("button", { name: "Save" }));
  await mia.getByText("one message every 1 hr").waitFor();
  await ben.getByText("one message every 1 hr").waitFor();
  await ben.getByTestId("slow-mode").waitFor();
  await type(ben, ben.getByRole("textbox", { name: "Message to Night watch" }), "The south fire is lit");
  await checkVariants(ben, "slowed");
  return {
    text: await ben.getByTestId("slow-mode").innerText(),
    canSend: await ben.getByRole("button", { name: "Send" }).isEnabled(),
  };
}

/**
 * Olga archives the community and reopens it. Ben's open topic and sidebar follow without a reload, and he finds it
 * among the archived communities. Returns the note that he reads in its topic.
 */
async function archive(ben, communityId, topicId) {
  const page = await open(tokens.olga, `/community/${communityId}/settings`);
  const opener = page.getByRole("button", { name: "Archive community …" });
  await press(page, opener);
  await checkVariants(page, "archive");
  await page.keyboard.press("Escape");
  await expectFocus(page, opener);
  await page.keyboard.press("Enter");
  await press(page, page.getByRole("dialog").getByRole("button", { name: "Archive", exact: true }));
  await page.getByRole("button", { name: "Reopen community" }).waitFor();
  const listed = ben.getByRole("navigation", { name: "Chat" }).getByRole("region", { name: "Hilltops" });
  await listed.waitFor({ state: "detached" });
  await ben.getByTestId("archived").waitFor();
  await checkVariants(page, "archived-settings");
  await navigate(ben, "/browse");
  await press(ben, ben.getByText("Archived communities"));
  await ben.getByRole("list", { name: "Archived communities" }).getByText("Hilltops").waitFor();
  await checkVariants(ben, "archived-list");
  await navigate(ben, `/topic/${topicId}`);
  const note = ben.getByTestId("archived");
  await note.waitFor();
  await checkVariants(ben, "archived");
  const text = await note.innerText();
  await press(page, page.getByRole("button", { name: "Reopen community" }));
  await page.getByRole("button", { name: "Archive community …" }).waitFor();
  await listed.waitFor();
  await note.waitFor({ state: "detached" });
  return text;
}

/**
 * Olga makes Mia an owner and leaves. Mia makes the community private, and adds Olga again. Returns Olga's role before
 * and after, and the visibility.
 */
async function handOver(mia, communityId) {
  const query = `{ community(id: "${communityId}") { visibility viewerRole } }`;
  const page = await open(tokens.olga, `/community/${communityId}`);
  await chooseAction(page, "mia", "Mia", "Make owner");
  await checkVariants(page, "make-owner");
  await press(page, page.getByRole("dialog").getByRole("button", { name: "Make owner", exact: true }));
  await member(page, "mia").getByText("Owner").waitFor();
  await press(page, page.getByRole("link", { name: "Settings", exact: true }));
  await press(page, page.getByRole("button", { name: "Leave community" }));
  await checkVariants(page, "leave");
  await press(page, page.getByRole("dialog").getByRole("button", { name: "Leave community", exact: true }));
  await page.getByText("You left Hilltops").waitFor();
  const { community } = await run(tokens.olga, query);
  await navigate(mia, `/community/${communityId}/settings`);
  await press(mia, mia.getByRole("radio", { name: /By request/ }), "ArrowDown");
  await checkVariants(mia, "private");
  await press(mia, mia.getByRole("button", { name: "Save" }));
  await mia.getByText("Settings saved").waitFor();
  await navigate(mia, `/community/${communityId}`);
  await type(mia, mia.getByRole("combobox", { name: "Find a person" }), "olga");
  await mia.getByRole("option", { name: /Olga/ }).waitFor();
  await mia.keyboard.press("Enter");
  await openMenu(mia, "olga", "Olga");
  await checkVariants(mia, "add-person");
  await press(mia, mia.getByRole("button", { name: "Add to the community" }));
  await mia.getByText("Olga is now a member of Hilltops").waitFor();
  const after = (await run(tokens.olga, query)).community;
  return { roles: [community.viewerRole, after.viewerRole], visibility: after.visibility };
}
