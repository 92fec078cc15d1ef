/**
 * The viewer's own data in a real Chromium, by keyboard alone: the browsers in which the viewer is signed in, and the
 * viewer's mutes. Prints a report as one line of JSON.
 *
 * Standard input: {url, chromium, tokens: {ann, bob}, screenshots}. Ann has three sessions.
 */
import { navigate, readInput } from "../browser.mjs";
import { choose, expectFocus, press } from "../keyboard.mjs";
import { openScreenChecker } from "../screen-checker.mjs";

const { tokens, ...options } = readInput();
const { findings, run, open, checkVariants, close } = await openScreenChecker(options);

try {
  const page = await open(tokens.ann, "/home");
  const mutes = await muteEverything(page);
  await navigate(page, "/home");
  await press(page, page.getByRole("button", { name: "Account" }));
  await press(page, page.getByRole("link", { name: "My data" }));
  await sessions(page).nth(2).waitFor();
  const text = await sessions(page).first().innerText();
  await checkVariants(page, "my-data");
  const muteTexts = await page.locator("[data-mute] p:last-child").allInnerTexts();
  const counts = [await countSessions()];
  await press(
    page,
    sessions(page)
      .first()
      .getByRole("button", { name: /^Sign out/ }),
  );
  await sessions(page).nth(2).waitFor({ state: "detached" });
  counts.push(await countSessions());
  await press(page, page.getByRole("button", { name: "Sign out everywhere else" }));
  await checkVariants(page, "sign-out-elsewhere");
  await press(page, page.getByRole("dialog").getByRole("button", { name: "Sign out", exact: true }));
  await page.getByText("No signed-in browsers").waitFor();
  counts.push(await countSessions());
  for (const name of ["Hills", "Watch", "bob"]) {
    await press(page, page.getByRole("button", { name: `Unmute ${name}` }));
    await page.getByRole("button", { name: `Unmute ${name}` }).waitFor({ state: "detached" });
  }
  await page.getByText("Nothing is muted").waitFor();
  mutes.push(await mutedSubjects());
  console.log(JSON.stringify({ text, counts, mutes, muteTexts, ...findings }));
} finally {
  await close();
}

function sessions(page) {
  return page.locator("[data-session]");
}

/** Returns the number of sessions that the API lists. */
async function countSessions() {
  return (await run(tokens.ann, "{ mySessions { id } }")).mySessions.length;
}

/**
 * Mutes Bob for good and unmutes him. Then mutes Bob and a topic for a day, and its community for eight hours.
 * Returns what is muted after each change.
 */
async function muteEverything(page) {
  await run(tokens.bob, "{ viewer { id } }");
  const create = 'mutation { createCommunity(input: {name: "Hills"}) { id } }';
  const community = (await run(tokens.ann, create)).createCommunity.id;
  const createTopic = `mutation { createTopic(input: {communityId: "${community}", title: "Watch"}) { id } }`;
  const topic = (await run(tokens.ann, createTopic)).createTopic.id;
  const muted = [];
  const button = (name) => page.getByRole("button", { name, exact: true });
  async function mute(name, duration) {
    await press(page, button(`Mute ${name}`));
    const menu = page.getByRole("dialog", { name: `Mute ${name}` });
    await menu.waitFor();
    if (name === "Hills") await checkVariants(page, "mute");
    await press(page, menu.getByRole("button", { name: duration }));
    await button(`Unmute ${name}`).waitFor();
    await expectFocus(page, button(`Unmute ${name}`));
    muted.push(await mutedSubjects());
  }
  await navigate(page, "/person/bob");
  await mute("bob", "Until I unmute");
  await press(page, button("Unmute bob"));
  await button("Mute bob").waitFor();
  muted.push(await mutedSubjects());
  await mute("bob", "1 day");
  await navigate(page, `/topic/${topic}`);
  await press(page, page.getByRole("button", { name: "Notifications from Watch", exact: true }));
  await choose(page, page.getByLabel("Mute for how long?"), "1 day");
  await checkVariants(page, "mute-topic");
  await press(page, page.getByRole("checkbox", { name: "Mute" }), "Space");
  await page.getByRole("button", { name: "Notifications from Watch (muted)" }).waitFor();
  muted.push(await mutedSubjects());
  await navigate(page, `/community/${community}/members`);
  await mute("Hills", "8 hours");
  return muted;
}

/** Returns for each mute that the API lists the kind of its subject, with its length in hours if it ends. */
async function mutedSubjects() {
  const { myMutes } = await run(tokens.ann, "{ myMutes { subject mutedAt until } }");
  return myMutes.map(({ subject, mutedAt, until }) => {
    const hours = Math.round((Date.parse(until) - Date.parse(mutedAt)) / 3_600_000);
    return until ? `${subject} ${hours} h` : subject;
  });
}
