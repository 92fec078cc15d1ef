/**
 * Screenshots of every screen, in both themes, wide and narrow, as WebP. Prints {files} as one line of JSON.
 *
 * Standard input: {url, chromium, tokens: {hana, ...}, screenshots}; the product is filled with demo data.
 */
import { writeFileSync } from "node:fs";
import { beginLooking, settled } from "./looking.mjs";
import { readOrder, go as visit } from "./visitor.mjs";

const SIZES = [
  { width: 1280, height: 800 },
  { width: 360, height: 740 },
];
const QUALITY = 82;
const BAD_LIST =
  "phone_number,name,time\n+819012345678,佐藤,10:00\n090-1234-5678,田中,10:30\n+81901234,鈴木,11:00\n";
const PASTED =
  "ann@harbour.example\ngone@harbour.example\nfull@valley.example\nnew@harbour.example\nwho@closed.example\nann@@harbour";

const { tokens, ...where } = readOrder();
const { browser, ask, open, close } = await beginLooking(where);
const files = [];

try {
  await signIn();
  const page = await open(tokens.hana, "/home");
  for (const [name, go] of Object.entries(SCREENS(await topicOfHana()))) await take(page, name, go);
  console.log(JSON.stringify({ files }));
} finally {
  await close();
}

/** How each screen is come to, and seen to be there. */
function SCREENS(topicId) {
  return {
    chat: async (page) => {
      await visit(page, `/topic/${topicId}`);
      await page.locator("[data-message]").first().waitFor();
    },
    home: async (page) => {
      await visit(page, "/home");
      await page.locator("[data-post]").first().waitFor();
    },
    schedule: async (page) => {
      await visit(page, "/publishing");
      await page.locator("main h1").first().waitFor();
    },
    notifications: async (page) => {
      await visit(page, "/notifications");
      await page.locator("main time").first().waitFor();
    },
    calls: async (page) => {
      await visit(page, "/calls");
      await page.locator("[data-job]", { hasText: "健診のご案内 11月" }).click();
      await page.locator("[data-outcome]").nth(2).waitFor({ timeout: 60_000 });
      await page.locator("[data-task]").first().waitFor();
    },
    "calls-list": async (page) => {
      await visit(page, "/newCallJob");
      await page.getByRole("textbox", { name: "Name" }).fill("健診のご案内 12月");
      await page.getByRole("textbox", { name: "Scenario" }).fill("{name}さん、健診は{time}からです。");
      await page.getByRole("textbox", { name: "Numbers" }).fill(BAD_LIST);
      await page.getByTestId("row-errors").locator("[data-row]").first().waitFor();
    },
    mail: async (page) => {
      await visit(page, "/mail");
      await page.getByRole("textbox", { name: /May mail go/ }).fill(PASTED);
      await page.getByRole("button", { name: "Look up" }).click();
      await page.locator('[data-address="ann@@harbour"]').waitFor();
    },
    "mail-rates": async (page) => {
      await visit(page, "/bounceRates");
      await page.getByRole("button", { name: "14 days" }).click();
      await page.getByTestId("bounce-rate").waitFor();
    },
  };
}

async function topicOfHana() {
  const { communities } = await ask(tokens.hana, "{ communities(joined: true) { topics(limit: 1) { id } } }");
  return communities.flatMap(({ topics }) => topics)[0].id;
}

async function signIn() {
  const context = await browser.newContext({ locale: "en-US", viewport: SIZES[0] });
  const page = await context.newPage();
  await page.goto(where.url);
  await page.getByRole("button", { name: /@hana/ }).waitFor();
  await page.locator("footer").getByText("Running, and ready to serve").waitFor();
  await take(page, "sign-in", async () => {});
  await context.close();
}

async function take(page, name, go) {
  await page.setViewportSize(SIZES[0]);
  await go(page);
  for (const size of SIZES) {
    await page.setViewportSize(size);
    for (const theme of ["light", "dark"]) {
      await page.emulateMedia({ colorScheme: theme, reducedMotion: "reduce" });
      await settled(page);
      // What came into sight by another width is fetched and laid out first.
      await page.waitForTimeout(400);
      await write(page, `${name}-${theme}-${size.width}`);
    }
  }
}

/** By the browser's own protocol: it can write WebP. */
async function write(page, name) {
  const session = await page.context().newCDPSession(page);
  const { data } = await session.send("Page.captureScreenshot", { format: "webp", quality: QUALITY });
  const file = `${where.screenshots}/${name}.webp`;
  writeFileSync(file, Buffer.from(data, "base64"));
  if (process.env.SCREENSHOTS_PNG)
    await page.screenshot({ path: `${process.env.SCREENSHOTS_PNG}/${name}.png` });
  files.push(file);
  await session.detach();
}
