/**
 * Takes WebP screenshots of every screen in both themes: at 1280 and 360 pixels, and of the main screens also at 2560.
 * Takes conversations and posts of two people, and requests, in both languages, too. Prints {files} as one line of JSON.
 *
 * Standard input: {url, chromium, tokens: {hana, sora, ...}, screenshots}. The product must contain the demo data. If
 * the environment variable SCREENSHOTS_PNG names a folder, the screenshots are also written there as PNG files. SCREENS
 * names the screens to take, such as `chat,thread`; without it, all are taken.
 */
import { writeFileSync } from "node:fs";
import { navigate, readInput } from "./browser.mjs";
import { openScreenChecker, waitForAnimations } from "./screen-checker.mjs";
import { webhookScreens } from "./webhook-screens.mjs";

const SIZES = [
  { width: 1280, height: 800 },
  { width: 360, height: 740 },
];
const WIDE_SIZE = { width: 2560, height: 1440 };
const MAIN_SCREENS = ["sign-in", "chat", "home", "schedule", "calls", "mail"];
const WEBP_QUALITY = 82;
const LIST_WITH_ERRORS =
  "phone_number,name,time\n+819012345678,佐藤,10:00\n090-1234-5678,田中,10:30\n+81901234,鈴木,11:00\n";
const CREATE_COMMUNITY = "mutation ($input: CreateCommunityInput!) { createCommunity(input: $input) { id } }";
const INVITE = "mutation ($input: CreateInvitationInput!) { createInvitation(input: $input) { url } }";
const OTHER_COMMUNITIES = [
  ["星を見る会", "新月の夜に、丘の上で。"],
  ["Harbour radio", "Who is on the air, and how far one hears us."],
  ["畑しごと", "季節の畑と、分けあう苗。"],
];
/**
 * In each language: a person at a computer who has a request, and one with a telephone in the same conversation, who
 * replies to a post.
 */
const PAIRS = [
  { locale: "en", atComputer: "priya", withTelephone: "noor", reply: "We see it from the pier, too!" },
  { locale: "ja", atComputer: "hana", withTelephone: "yuki", reply: "桟橋からも見えました！" },
];
const PARENTS =
  '{ conversations(latest: "now") { items { topic { id messages(latest: "now") { items { id thread { id } } } } } } }';
const REQUESTS = '{ conversations(state: REQUESTED, latest: "now") { items { topic { id } } } }';
const TALKS = '{ conversations(latest: "now") { items { name topic { id } } } }';
const POSTS = '{ localFeed(latest: "now", limit: 50) { items { id replyCount } } }';
const REPLY = "mutation ($input: CreatePostInput!) { createPost(input: $input) { id } }";
const REACT = 'mutation ($id: ID!) { addPostReaction(postId: $id, emoji: "🔥") { id } }';
const LAST_MESSAGE =
  'query ($id: ID!) { messages(topicId: $id, latest: "now", limit: 1) { items { id thread { replyCount } } } }';
const PASTED_ADDRESSES =
  "ann@harbour.example\ngone@harbour.example\nfull@valley.example\nnew@harbour.example\nwho@closed.example\nann@@harbour";

const { tokens, ...options } = readInput();
const { browser, run, open, close } = await openScreenChecker(options);
const files = [];
const chosen = process.env.SCREENS?.split(",");

try {
  await takeSignIn();
  for (const pair of PAIRS) await takePair(pair);
  const page = await open(tokens.hana, "/home");
  const topicId = await topicOfHana();
  const webhooks = webhookScreens(run, tokens.hana, topicId);
  const screens = { ...mainScreens(topicId), ...conversationScreens(), ...webhooks, ...otherScreens() };
  for (const [name, open] of Object.entries(screens)) await takeScreenshots(page, name, open);
  console.log(JSON.stringify({ files }));
} finally {
  await close();
}

/** Returns functions that open the screens of conversations, of a thread and of a post with replies. */
function conversationScreens() {
  return {
    "direct-messages": async (page) => {
      for (const each of [tokens.ken, tokens.emma]) await open(each, "/home");
      const { conversations } = await run(tokens.hana, TALKS);
      await navigate(page, `/topic/${conversations.items.find(({ name }) => name !== "").topic.id}`);
      await page.locator("[data-message] img[alt*=狼煙台]").waitFor();
      await page.locator("main [data-online]").first().waitFor({ timeout: 60_000 });
    },
    thread: async (page) => {
      const topicId = await firstTopic();
      const { messages } = await run(tokens.hana, LAST_MESSAGE, { id: topicId });
      await navigate(page, `/topic/${topicId}/latest/${messages.items[0].id}`);
      await page.getByRole("complementary", { name: "Thread" }).locator("[data-message]").nth(2).waitFor();
    },
    post: async (page) => {
      const { localFeed } = await run(tokens.hana, POSTS);
      const [{ id }] = localFeed.items.toSorted((one, other) => other.replyCount - one.replyCount);
      await navigate(page, `/post/${id}`);
      await page.locator("[data-post]").nth(3).waitFor();
    },
    "emoji-picker": async (page) => {
      await navigate(page, `/topic/${await firstTopic()}`);
      const message = page.locator("[data-message]").last();
      await message.waitFor();
      await message.hover();
      await message.getByRole("button", { name: "React" }).click();
      await page.getByRole("dialog").getByRole("button").nth(20).waitFor();
    },
    stamps: async (page) => {
      await page.keyboard.press("Escape");
      await page.getByRole("button", { name: "Stamps" }).click();
      await page.getByRole("dialog", { name: "Stamps" }).getByRole("button").first().waitFor();
    },
    "notification-settings": async (page) => {
      await page.keyboard.press("Escape");
      await screenAt("/notificationSettings", "main h2")(page);
    },
  };
}

/** Returns the id of the topic whose last message has a thread. */
async function firstTopic() {
  const { communities } = await run(
    tokens.hana,
    "{ communities(joined: true) { topics(limit: 20) { id } } }",
  );
  for (const { id } of communities.flatMap(({ topics }) => topics)) {
    const { messages } = await run(tokens.hana, LAST_MESSAGE, { id });
    if (messages.items[0]?.thread) return id;
  }
  throw new Error("No topic has a thread.");
}

/** Returns functions that open all screens except the main screens. The palette is last, because it stays open. */
function otherScreens() {
  return {
    profile: async (page) => {
      const { users } = await run(tokens.hana, '{ users(query: "ken", limit: 1) { id } }');
      await navigate(page, `/person/${users[0].id}`);
      await page.locator("[data-post]").first().waitFor();
    },
    everyone: screenAt("/everyone", "[data-post]"),
    browse: async (page) => {
      for (const [name, description] of OTHER_COMMUNITIES)
        await run(tokens.sora, CREATE_COMMUNITY, { input: { name, description } });
      await navigate(page, "/browse");
      await page
        .locator("main h2")
        .nth(OTHER_COMMUNITIES.length - 1)
        .waitFor();
    },
    reactions: screenAt("/reactions", "main time"),
    search: screenAt("/search/messages/狼煙", "main mark"),
    members: async (page) => {
      const { communities } = await run(tokens.hana, "{ communities(joined: true, limit: 1) { id } }");
      await navigate(page, `/community/${communities[0].id}/members`);
      await page.locator("[data-member]").first().waitFor();
    },
    "my-data": screenAt("/myData", "main h2"),
    administration: screenAt("/admin", "[data-user]"),
    invitations: async (page) => {
      await run(tokens.hana, INVITE, { input: { email: "mina@harbour.example", role: "OPERATOR" } });
      await run(tokens.hana, INVITE, { input: { maxUses: 20, expiresInHours: 72 } });
      await screenAt("/adminInvitations", "[data-invitation]")(page);
    },
    "audit-log": screenAt("/adminAudit", "main time"),
    "calls-limits": screenAt("/callRules", "main input"),
    "mail-domains": async (page) => {
      await navigate(page, "/mailDomains");
      await page
        .getByRole("textbox", { name: "Domains" })
        .fill("harbour.example, valley.example, closed.example");
      await page.getByRole("button", { name: "Look up" }).click();
      await page.locator("[data-domain]").nth(2).waitFor();
    },
    "schedule-composer": async (page) => {
      await navigate(page, "/publishing/month/today/new");
      const dialog = page.getByRole("dialog", { name: "Schedule a post" });
      await dialog
        .getByLabel("What do you want to say?")
        .fill("来週の収穫祭、狼煙は18時に上がります。 #収穫祭");
    },
    palette: async (page) => {
      await navigate(page, "/home");
      await page.getByRole("dialog").waitFor({ state: "detached" });
      await page.locator("[data-post]").first().waitFor();
      await page.keyboard.press("Control+k");
      await page.getByRole("combobox").fill("a");
      await page.getByRole("option").nth(3).waitFor();
    },
  };
}

/** Returns functions that open each main screen and wait until it is ready. */
function mainScreens(topicId) {
  return {
    chat: async (page) => {
      await navigate(page, `/topic/${topicId}`);
      await page.locator("[data-message]").first().waitFor();
    },
    home: async (page) => {
      await navigate(page, "/home");
      await page.locator("[data-post]").first().waitFor();
    },
    schedule: async (page) => {
      await navigate(page, "/publishing");
      await page.locator("main h1").first().waitFor();
    },
    notifications: async (page) => {
      await navigate(page, "/notifications");
      await page.locator("main time").first().waitFor();
    },
    calls: async (page) => {
      await navigate(page, "/calls");
      await page.locator("[data-job]", { hasText: "健診のご案内 11月" }).click();
      await page.locator("[data-outcome]").nth(2).waitFor({ timeout: 60_000 });
      await page.locator("[data-task]").first().waitFor();
    },
    "calls-list": async (page) => {
      await navigate(page, "/newCallJob");
      await page.getByRole("textbox", { name: "Name" }).fill("健診のご案内 12月");
      await page.getByRole("textbox", { name: "Scenario" }).fill("{name}さん、健診は{time}からです。");
      await page.getByRole("textbox", { name: "Numbers", exact: true }).fill(LIST_WITH_ERRORS);
      await page.getByTestId("row-errors").locator("[data-row]").first().waitFor();
    },
    mail: async (page) => {
      await navigate(page, "/mail");
      await page.getByRole("textbox", { name: /Check addresses/ }).fill(PASTED_ADDRESSES);
      await page.getByRole("button", { name: "Look up" }).click();
      await page.locator('[data-address="ann@@harbour"]').waitFor();
    },
    "mail-policy": async (page) => {
      await navigate(page, "/mailPolicy");
      await page.getByTestId("policy-form").waitFor();
    },
    "mail-rates": async (page) => {
      await navigate(page, "/bounceRates");
      await page.getByRole("button", { name: "14 days" }).click();
      await page.getByTestId("bounce-rate").waitFor();
    },
  };
}

/** Returns a function that opens a path and waits for a selector. */
function screenAt(path, selector) {
  return async (page) => {
    await navigate(page, path);
    await page.locator(selector).first().waitFor();
  };
}

/** Returns the id of a topic of Hana's communities. */
async function topicOfHana() {
  const { communities } = await run(tokens.hana, "{ communities(joined: true) { topics(limit: 1) { id } } }");
  return communities.flatMap(({ topics }) => topics)[0].id;
}

/** Takes the screenshots of the sign-in page. */
async function takeSignIn() {
  const context = await browser.newContext({ locale: "en-US", viewport: SIZES[0] });
  const page = await context.newPage();
  await page.goto(options.url);
  await page.getByRole("button", { name: /@hana/ }).waitFor();
  await page.locator("footer").getByText("The server is ready").waitFor();
  await takeScreenshots(page, "sign-in", async () => {});
  await context.close();
}

/** Takes a conversation with an open thread in the windows of two people, and then a request to one of them. */
async function takePair({ locale, atComputer, withTelephone, reply }) {
  const people = [tokens[atComputer], tokens[withTelephone]];
  const windows = await openWindows(locale, people);
  const { conversations } = await run(people[0], PARENTS);
  const parents = conversations.items.flatMap(({ topic }) =>
    topic.messages.items
      .filter(({ thread }) => thread)
      .map((message) => `/topic/${topic.id}/latest/${message.id}`),
  );
  await takeWindows(`conversation-${locale}`, windows, async (page) => {
    await navigate(page, parents[0]);
    await page.getByTestId("thread").locator("[data-message]").nth(3).waitFor();
    await page.getByTestId("thread").locator("[data-online]").first().waitFor({ timeout: 60_000 });
  });
  const requested = await run(people[0], REQUESTS);
  await takeWindows(`request-${locale}`, await openWindows(locale, [people[0], people[0]]), async (page) => {
    await page.locator("summary").filter({ visible: true }).click();
    await navigate(page, `/topic/${requested.conversations.items[0].topic.id}`);
    await page.getByTestId("request").waitFor();
  });
  await takePostOf(locale, people, reply);
}

/** Takes the newest post in the windows of two people. One of them has replied to it and reacted. */
async function takePostOf(locale, people, text) {
  const { localFeed } = await run(people[0], POSTS);
  const [{ id }] = localFeed.items;
  await run(people[1], REPLY, { input: { text, inReplyTo: id } });
  await run(people[1], REACT, { id });
  await takeWindows(`post-${locale}`, await openWindows(locale, people), async (page) => {
    await navigate(page, `/post/${id}`);
    await page.locator("[data-post]").nth(1).waitFor();
  });
}

/** Opens a window of each size, each with a person. */
function openWindows(locale, people) {
  const options = { locale, colorScheme: "light", reducedMotion: "reduce" };
  return Promise.all(people.map((each, n) => open(each, "/chat", { ...options, viewport: SIZES[n] })));
}

/** Takes the screenshots of a screen in open windows, and closes them. */
async function takeWindows(name, windows, open) {
  if (!chosen || chosen.includes(name)) {
    await Promise.all(windows.map(open));
    for (const page of windows) {
      await waitForAnimations(page);
      await page.waitForTimeout(400);
      await writeScreenshot(page, `${name}-${page.viewportSize().width}`);
    }
  }
  for (const page of windows) await page.context().close();
}

async function takeScreenshots(page, name, open) {
  if (chosen && !chosen.includes(name)) return;
  await page.setViewportSize(SIZES[0]);
  await open(page);
  for (const size of MAIN_SCREENS.includes(name) ? [...SIZES, WIDE_SIZE] : SIZES) {
    await page.setViewportSize(size);
    for (const theme of ["light", "dark"]) {
      await page.emulateMedia({ colorScheme: theme, reducedMotion: "reduce" });
      await waitForAnimations(page);
      // Content that becomes visible at the new width has to load and be laid out first.
      await page.waitForTimeout(400);
      await writeScreenshot(page, `${name}-${theme}-${size.width}`);
    }
  }
}

/** Writes a WebP file through the DevTools protocol, because Playwright writes only PNG and JPEG. */
async function writeScreenshot(page, name) {
  const session = await page.context().newCDPSession(page);
  const { data } = await session.send("Page.captureScreenshot", { format: "webp", quality: WEBP_QUALITY });
  const file = `${options.screenshots}/${name}.webp`;
  writeFileSync(file, Buffer.from(data, "base64"));
  if (process.env.SCREENSHOTS_PNG)
    await page.screenshot({ path: `${process.env.SCREENSHOTS_PNG}/${name}.png` });
  files.push(file);
  await session.detach();
}
