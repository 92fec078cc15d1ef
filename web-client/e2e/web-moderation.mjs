/**
 * Moderation of a community in a real Chromium: roles, mutes, bans, deleted messages, requests to join and settings.
 * Prints a report as one line of JSON.
 *
 * Standard input: {url, chromium, tokens: {olga, mia, ben}, screenshots}. Olga founds the community.
 */
import { navigate, readInput } from "./browser.mjs";
import { openScreenChecker } from "./screen-checker.mjs";

const { tokens, ...options } = readInput();
const { findings, run, open, checkBothSizes, close } = await openScreenChecker(options);

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
  report.memberActions = await openAsMember(ben, communityId);
  await checkInJapanese(communityId);
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

/** Opens the menu of a person by keyboard. */
async function openMenu(page, id, name) {
  await member(page, id)
    .getByRole("button", { name: `Actions for ${name}` })
    .press("Enter");
  await page.getByRole("dialog", { name: `Actions for ${name}` }).waitFor();
}

async function chooseAction(page, id, name, action) {
  await openMenu(page, id, name);
  await page.getByRole("button", { name: action, exact: true }).press("Enter");
}

/** Olga makes Mia a moderator. Returns the text of Mia's row. */
async function appoint(topicId) {
  const page = await open(tokens.olga, `/topic/${topicId}`);
  await page.getByRole("link", { name: "Members of Hilltops" }).click();
  await member(page, "mia").waitFor();
  await openMenu(page, "mia", "Mia");
  await checkBothSizes(page, "members");
  await page.getByRole("button", { name: "Make moderator" }).press("Enter");
  await member(page, "mia").getByText("Moderator").waitFor();
  const text = await member(page, "mia").innerText();
  await page.getByRole("link", { name: "Settings", exact: true }).click();
  await page.getByRole("radio", { name: /By request/ }).check();
  await checkBothSizes(page, "settings");
  await page.getByRole("button", { name: "Save" }).click();
  await page.getByText("Settings saved").waitFor();
  await page.close();
  return text;
}

function message(page, text) {
  return page.locator("[data-message]").filter({ hasText: text });
}

/** Mia mutes Ben from his message. Returns what Ben sees instead of the message field. */
async function mute(mia, ben) {
  await message(mia, "buy shoes").hover();
  await mia.getByRole("link", { name: "Moderate Ben" }).click();
  await mia.getByRole("group", { name: "Find a person" }).getByText("Ben").waitFor();
  await chooseAction(mia, "ben", "Ben", "Mute …");
  const dialog = mia.getByRole("dialog", { name: "Mute Ben" });
  await dialog.getByLabel("Duration").selectOption("10 minutes");
  await checkBothSizes(mia, "mute");
  await dialog.getByRole("button", { name: "Mute", exact: true }).press("Enter");
  await member(mia, "ben").getByText("Muted until").waitFor();
  const field = ben.getByRole("textbox", { name: "Message to Watch" });
  await field.fill("more shoes");
  await field.press("Enter");
  await ben.getByTestId("muted").waitFor();
  await checkBothSizes(ben, "muted");
  return await ben.getByTestId("muted").innerText();
}

/** Mia deletes Ben's message. Returns what Ben sees in its place. */
async function deleteMessage(mia, ben, topicId) {
  await chooseAction(mia, "ben", "Ben", "Unmute");
  await member(mia, "ben").getByText("Muted until").waitFor({ state: "detached" });
  await navigate(mia, `/topic/${topicId}`);
  await message(mia, "buy shoes").hover();
  await mia.getByRole("button", { name: "Delete message" }).click();
  const dialog = mia.getByRole("dialog", { name: "Delete message" });
  const question = await dialog.innerText();
  await dialog.getByRole("button", { name: "Delete", exact: true }).click();
  await ben.getByText("This message was deleted.").waitFor();
  return { isRecorded: question.includes("recorded with your name") };
}

/** Mia bans Ben. Returns what Ben sees, before and after he tries to join again. */
async function ban(mia, ben, communityId) {
  await navigate(mia, `/community/${communityId}`);
  await member(mia, "ben").waitFor();
  await chooseAction(mia, "ben", "Ben", "Ban …");
  const dialog = mia.getByRole("dialog", { name: "Ban Ben" });
  const canSubmitWithoutReason = await dialog.getByRole("button", { name: "Ban", exact: true }).isEnabled();
  await dialog.getByLabel("Reason").fill("Sells shoes in every topic");
  await dialog.getByLabel("Ends").selectOption("7 days");
  await checkBothSizes(mia, "ban");
  await dialog.getByLabel("Reason").press("Enter");
  await member(mia, "ben").waitFor({ state: "detached" });
  await ben.getByText("You are no longer a member of Hilltops").waitFor();
  await ben.getByRole("region", { name: "Hilltops" }).waitFor({ state: "detached" });
  await checkBothSizes(ben, "removed");
  await ben.getByRole("button", { name: "Join", exact: true }).press("Enter");
  await ben.getByRole("alert").getByText("You can join again after").waitFor();
  await checkBothSizes(ben, "banned");
  return { canSubmitWithoutReason, text: await ben.getByRole("alert").innerText() };
}

/** Returns the text of the ban, and how many bans there are after Mia has lifted it. */
async function liftBan(mia, communityId) {
  await navigate(mia, `/community/${communityId}/bans`);
  const row = mia.locator('[data-ban="ben"]');
  await row.waitFor();
  const text = await row.innerText();
  await checkBothSizes(mia, "bans");
  await row.getByRole("button", { name: "Lift ban of Ben" }).press("Enter");
  await mia.getByText("Nobody is banned").waitFor();
  return { text, count: await mia.locator("[data-ban]").count() };
}

/** Ben asks to join, and Mia approves. Returns the text of the request. */
async function approveRequest(mia, ben, communityId) {
  await navigate(ben, "/browse");
  await ben.getByRole("button", { name: "Ask to join Hilltops" }).press("Enter");
  await ben.keyboard.type("No more shoes, promised");
  await checkBothSizes(ben, "ask");
  await ben.getByRole("dialog").getByRole("button", { name: "Ask to join", exact: true }).click();
  await ben.getByText("Your request was sent").waitFor();
  await navigate(mia, `/community/${communityId}/requests`);
  const row = mia.locator('[data-request="ben"]');
  await row.waitFor();
  const text = await row.innerText();
  await checkBothSizes(mia, "requests");
  await row.getByRole("button", { name: "Approve Ben" }).press("Enter");
  await mia.getByText("No requests").waitFor();
  return text;
}

/** Returns how many actions and sections a member sees. */
async function openAsMember(ben, communityId) {
  await navigate(ben, `/community/${communityId}`);
  await member(ben, "olga").waitFor();
  const sections = ben.getByRole("navigation", { name: "Sections of the community" });
  return {
    actions: await ben.getByRole("button", { name: /^Actions for/ }).count(),
    sections: await sections.getByRole("link").allInnerTexts(),
  };
}

async function checkInJapanese(communityId) {
  const page = await open(tokens.olga, `/community/${communityId}`, { locale: "ja-JP" });
  await member(page, "ben").getByRole("button", { name: "Ben さんへの操作" }).click();
  await checkBothSizes(page, "members-ja");
  await page.getByRole("button", { name: "追放 …" }).click();
  await checkBothSizes(page, "ban-ja");
  await page.keyboard.press("Escape");
  await navigate(page, `/community/${communityId}/settings`);
  await page.getByRole("radio").first().waitFor();
  await checkBothSizes(page, "settings-ja");
}
