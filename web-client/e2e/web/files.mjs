/**
 * Files of messages in a real Chromium, by keyboard. A person chooses, pastes and drops files, describes and removes
 * them, and sends them over a connection that breaks, or without one. The page is loaded again while files are on their
 * way. Another person sees the files. Prints a report as one line of JSON.
 *
 * Standard input: {url, chromium, tokens: {ann, bob}, files, screenshots}. `files` are the paths of beacon.png,
 * notes.txt and map.txt.
 */
import { readFileSync } from "node:fs";
import { navigate, readInput } from "../browser.mjs";
import { expectFocus, press, type } from "../keyboard.mjs";
import { openScreenChecker } from "../screen-checker.mjs";

const { tokens, files, ...options } = readInput();
const { findings, run, open, checkVariants, close } = await openScreenChecker(options);
const PHONE = { width: 360, height: 740 };
const bytes = [...readFileSync(files[0])];

try {
  const topic = await createTopic();
  const page = await open(tokens.ann, `/topic/${topic}`);
  let cuts = 0;
  await page.route("**/uploads/*", async (route) => {
    if (route.request().method() === "PUT" && cuts++ === 0) await route.abort("connectionreset");
    else await route.continue();
  });
  const send = page.getByRole("button", { name: "Send", exact: true });
  await chooseFiles(page, "Add files", files.slice(0, 2));
  await composed(page, "ready").nth(1).waitFor();
  const isBlocked = await send.isDisabled();
  const hasCamera = await page.getByRole("button", { name: "Take a picture" }).isVisible();
  await checkVariants(page, "files-composed");
  await type(page, page.getByLabel("Description of beacon.png"), "A beacon on a hill");
  for (const how of ["paste", "drop"]) await give(page, how);
  await composed(page, "ready").nth(3).waitFor();
  for (const name of ["pasted.png", "dropped.png"])
    await press(page, page.getByRole("button", { name: `Remove ${name}` }));
  await composed(page, "ready").nth(2).waitFor({ state: "detached" });
  const drops = await dropOutsideOfField(page, files[2]);
  const reloaded = await continueAfterReload(page, files[1]);
  const again = await chooseAgainAfterReload(page, files[1]);
  await press(page, send);
  await page.locator("img[data-picture]").waitFor();

  const others = await open(tokens.bob, `/topic/${topic}`);
  await others.locator("img[data-picture]").waitFor();
  const alt = await others.locator("img[data-picture]").getAttribute("alt");
  await checkVariants(others, "files-message");
  const download = others.waitForEvent("download");
  await press(others, others.getByRole("button", { name: /^Download notes.txt/ }));
  const copy = `${options.screenshots}/downloaded`;
  await (await download).saveAs(copy);
  const saved = readFileSync(copy, "utf8");
  await press(others, others.getByRole("button", { name: "Show large: A beacon on a hill" }));
  await others.getByRole("dialog").getByRole("img").waitFor();
  await checkVariants(others, "files-large");
  await others.keyboard.press("Escape");
  await sendPictures(page);
  const looked = await lookThroughPictures(others);
  const keptFiles = await sendWithoutConnection(page, files[0]);
  await others.getByRole("img", { name: "A torch" }).waitFor();
  const camera = await takePicture(topic);
  const quoted = await quotePictures(page, others);
  const kept = await keepWithinLimits(page, topic, files.slice(1));
  console.log(
    JSON.stringify({
      isBlocked,
      hasCamera,
      cuts: Math.min(cuts, 2),
      drops,
      reloaded,
      again,
      keptFiles,
      alt,
      saved,
      looked,
      camera,
      quoted,
      kept,
      ...findings,
    }),
  );
} finally {
  await close();
}

/** Creates a topic in a community of Ann that Bob has joined. Returns the topic's id. */
async function createTopic() {
  const create = 'mutation { createCommunity(input: {name: "Hills"}) { id } }';
  const community = (await run(tokens.ann, create)).createCommunity.id;
  await run(tokens.bob, `mutation { joinCommunity(communityId: "${community}") { id } }`);
  const input = `{communityId: "${community}", title: "Watch"}`;
  const topic = (await run(tokens.ann, `mutation { createTopic(input: ${input}) { id } }`)).createTopic.id;
  await run(tokens.ann, `mutation { postMessage(input: {topicId: "${topic}", text: "Look"}) { id } }`);
  return topic;
}

function composed(page, state) {
  return page.locator(`[data-composed=${state}]`);
}

/** Presses a button that opens the browser's dialog for files, and chooses files there. */
async function chooseFiles(page, button, paths) {
  const dialog = page.waitForEvent("filechooser");
  await press(page, page.getByRole("button", { name: button }));
  await (await dialog).setFiles(paths);
}

/**
 * Sends the text file again, half of which arrives before the upload stops. Returns the offsets at which bytes are sent,
 * and a function that lets the upload continue.
 */
async function sendHalf(page, path) {
  const half = readFileSync(path).subarray(0, 6);
  const offsets = [];
  async function interrupt(route) {
    if (route.request().method() !== "PUT") return await route.fallback();
    offsets.push(await route.request().headerValue("Upload-Offset"));
    if (offsets.length > 2) return await route.continue();
    if (offsets.length > 1) return; // The rest of the bytes is on its way until the page is loaded again.
    await route.fetch({ postData: half });
    await route.abort("connectionreset");
  }
  await page.route("**/uploads/*", interrupt);
  await press(page, page.getByRole("button", { name: "Remove notes.txt" }));
  await chooseFiles(page, "Add files", [path]);
  while (offsets.length < 2) await page.waitForTimeout(20);
  return { offsets, stop: () => page.unroute("**/uploads/*", interrupt) };
}

/** Loads the page again while half of the text file is sent. Returns the offsets at which bytes were sent. */
async function continueAfterReload(page, path) {
  const { offsets, stop } = await sendHalf(page, path);
  await page.reload();
  await composed(page, "ready").nth(1).waitFor();
  await stop();
  return offsets;
}

/**
 * Loads the page again while half of the text file is sent, and the browser has lost its bytes. Then chooses the file
 * again. Returns what its row says, whether the message could be sent, the description of the other file after the
 * reload, and the offsets at which bytes were sent.
 */
async function chooseAgainAfterReload(page, path) {
  const { offsets, stop } = await sendHalf(page, path);
  await page.evaluate(async () => {
    for (const name of await caches.keys()) await caches.delete(name);
  });
  await page.reload();
  const row = composed(page, "interrupted");
  await row.waitFor();
  await composed(page, "ready").waitFor();
  const isBlocked = await page.getByRole("button", { name: "Send", exact: true }).isDisabled();
  const notice = await row.getByRole("alert").innerText();
  const alt = await page.getByLabel("Description of beacon.png").inputValue();
  await checkVariants(page, "files-interrupted");
  await chooseFiles(page, "Choose again: notes.txt", [path]);
  await composed(page, "ready").nth(1).waitFor();
  await stop();
  return { notice, isBlocked, alt, offsets };
}

/**
 * Sends a message with a picture, the first file of the page, while the server can't be reached. Loads the page again,
 * and lets the server answer. Returns how many files the browser then keeps.
 */
async function sendWithoutConnection(page, path) {
  await page.reload({ waitUntil: "networkidle" });
  const rows = "**/assets/composed-rows*";
  await page.route(rows, (route) => route.abort("connectionrefused"));
  const reachServer = await refuseUploads(page);
  await chooseFiles(page, "Add files", [path]);
  await composed(page, "waiting").waitFor();
  await type(page, page.getByLabel("Description of beacon.png"), "A torch");
  await page.unroute(rows);
  await checkVariants(page, "files-waiting");
  await press(page, page.getByRole("button", { name: "Send", exact: true }));
  await page.locator("[data-pending=waiting]").waitFor();
  await page.reload();
  await page.locator("[data-pending=waiting]").waitFor();
  await checkVariants(page, "files-pending");
  await reachServer();
  await page.getByRole("img", { name: "A torch" }).waitFor();
  await page.locator("[data-pending]").waitFor({ state: "detached" });
  return (await keptAddresses(page)).length;
}

/** Refuses new uploads. Returns a function that lets the server answer again. */
async function refuseUploads(page) {
  const refuse = (route) =>
    route.request().postData()?.includes("createUpload")
      ? route.abort("connectionrefused")
      : route.fallback();
  await page.route("**/graphql", refuse);
  return () => page.unroute("**/graphql", refuse);
}

/** Returns the paths under which the browser keeps files. */
function keptAddresses(page) {
  return page.evaluate(async () => {
    const caching = (await caches.keys()).map((name) => caches.open(name));
    const requests = await Promise.all((await Promise.all(caching)).map((cache) => cache.keys()));
    return requests.flat().map(({ url }) => new URL(url).pathname);
  });
}

/**
 * Chooses files that wait for the server, in a browser that keeps files already: an expired one, a recent one, and then
 * one that leaves no space. Signs out at the end. Returns which of the others were still kept, which of the chosen were
 * there after a reload, and how many files the browser kept after the sign-out.
 */
async function keepWithinLimits(page, topic, paths) {
  const day = 86_400_000;
  await navigate(page, `/topic/${topic}`);
  await refuseUploads(page);
  await keepFile(page, "expired", { age_ms: 14 * day + 60_000, size: 1 });
  await keepFile(page, "recent", { age_ms: 13 * day, size: 1 });
  await chooseFiles(page, "Add files", [paths[0]]);
  await composed(page, "waiting").waitFor();
  while ((await keptAddresses(page)).length !== 2) await page.waitForTimeout(20);
  const others = (await keptAddresses(page)).filter((path) => /expired|recent/.test(path));
  await keepFile(page, "large", { age_ms: 0, size: 512 * 2 ** 20 - 20 });
  await chooseFiles(page, "Add files", [paths[1]]);
  await composed(page, "waiting").nth(1).waitFor();
  await page.reload();
  await composed(page, "interrupted").waitFor();
  const afterReload = await page
    .locator("[data-composed]")
    .evaluateAll((rows) => rows.map(({ dataset }) => dataset.composed));
  await press(page, page.getByRole("button", { name: "Account" }));
  await press(page, page.getByRole("button", { name: "Sign out" }));
  await press(page, page.getByRole("dialog", { name: "Sign out" }).getByRole("button", { name: "Sign out" }));
  await page.locator("#token").waitFor();
  while ((await keptAddresses(page)).length > 0) await page.waitForTimeout(20);
  return { others, afterReload };
}

/** Adds a file to those that the browser keeps, as if it had been chosen `age_ms` ago and had `size` bytes. */
function keepFile(page, key, { age_ms, size }) {
  return page.evaluate(
    async ({ path, headers }) => {
      const [name] = await caches.keys();
      await (await caches.open(name)).put(path, new Response("", { headers }));
    },
    {
      path: `/kept-files/${key}`,
      headers: { "x-kept-at": String(Date.now() - age_ms), "x-size": String(size) },
    },
  );
}

/**
 * Drops a file on the messages, whose field takes it, and on the navigation. Returns whether the page prevented what the
 * browser does with a file, at both places, and how many files were then to be sent.
 */
async function dropOutsideOfField(page, path) {
  const onMessages = await dropFile(page, page.locator("[data-message]").first(), path);
  await composed(page, "ready").nth(2).waitFor();
  const onNavigation = await dropFile(page, page.getByRole("navigation", { name: "Screens" }), path);
  const files = await page.locator("[data-composed]").count();
  await press(page, page.getByRole("button", { name: "Remove map.txt" }));
  await composed(page, "ready").nth(2).waitFor({ state: "detached" });
  return { onMessages, onNavigation, files };
}

/** Drags a file from outside of the browser to an element, and drops it. Returns whether the page prevents the default. */
async function dropFile(page, locator, path) {
  const client = await page.context().newCDPSession(page);
  const { x, y, width, height } = await locator.boundingBox();
  const place = { x: x + width / 2, y: y + height / 2 };
  await page.evaluate(() => {
    globalThis.isPrevented = new Promise((resolve) => {
      addEventListener("dragover", (event) => resolve(event.defaultPrevented), { once: true });
    });
  });
  const data = { items: [], files: [path], dragOperationsMask: 1 };
  for (const type of ["dragEnter", "dragOver", "drop"])
    await client.send("Input.dispatchDragEvent", { type, ...place, data });
  await client.detach();
  return await page.evaluate(() => globalThis.isPrevented);
}

/**
 * Takes a picture on a touch screen, and looks at the field for posts there. Returns what the file input asks for.
 */
async function takePicture(topic) {
  const phone = await open(tokens.bob, `/topic/${topic}`, { viewport: PHONE, hasTouch: true });
  const camera = phone.waitForEvent("filechooser");
  await press(phone, phone.getByRole("button", { name: "Take a picture" }));
  const input = (await camera).element();
  const asksFor = [await input.getAttribute("accept"), await input.getAttribute("capture")];
  await (await camera).setFiles(files[0]);
  await composed(phone, "ready").waitFor();
  await checkVariants(phone, "files-camera");
  await navigate(phone, "/home");
  await phone.getByRole("button", { name: "Take a picture" }).waitFor();
  await checkVariants(phone, "files-camera-post");
  return asksFor;
}

/** Sends a message with three pictures. */
async function sendPictures(page) {
  await chooseFiles(page, "Add files", [files[0]]);
  for (const how of ["paste", "drop"]) await give(page, how);
  await composed(page, "ready").nth(2).waitFor();
  for (const [name, text] of [
    ["beacon.png", "A tent"],
    ["pasted.png", "A boat"],
    ["dropped.png", "A fire"],
  ])
    await type(page, page.getByLabel(`Description of ${name}`), text);
  await press(page, page.getByRole("button", { name: "Send", exact: true }));
}

/** Opens the second of three pictures, and goes to others by keys and buttons. Returns what was announced each time. */
async function lookThroughPictures(page) {
  const opener = page.getByRole("button", { name: "Show large: A boat" });
  await press(page, opener);
  const dialog = page.getByRole("dialog");
  const status = dialog.getByRole("status");
  await dialog.getByRole("img", { name: "A boat" }).waitFor();
  await checkVariants(page, "files-several-large");
  const announced = [await status.innerText()];
  for (const key of ["ArrowRight", "ArrowRight", "ArrowLeft", "Home", "ArrowLeft", "End"]) {
    await page.keyboard.press(key);
    announced.push(await status.innerText());
  }
  for (const name of ["Previous picture", "Next picture"]) {
    await press(page, dialog.getByRole("button", { name }));
    announced.push(await status.innerText());
  }
  await dialog.getByRole("img", { name: "A fire" }).waitFor();
  await page.keyboard.press("Escape");
  await expectFocus(page, opener);
  return announced;
}

/** Ann posts a picture and a file. Bob quotes the post. Returns what his quote shows of the files. */
async function quotePictures(annPage, bobPage) {
  await navigate(annPage, "/home");
  await chooseFiles(annPage, "Add files", files.slice(0, 2));
  await composed(annPage, "ready").nth(1).waitFor();
  await type(annPage, annPage.getByLabel("Description of beacon.png"), "A lighthouse");
  await press(annPage, annPage.getByRole("button", { name: "Post", exact: true }));
  await annPage.locator("img[data-picture]").waitFor();
  await navigate(bobPage, "/everyone");
  await press(bobPage, bobPage.getByRole("button", { name: "Quote, 0 quotes" }));
  await type(bobPage, bobPage.getByRole("textbox", { name: "Write about this post" }), "Look at that");
  await bobPage.getByRole("dialog").getByRole("img", { name: "A lighthouse" }).waitFor();
  await checkVariants(bobPage, "files-quoting");
  await press(bobPage, bobPage.getByRole("dialog").getByRole("button", { name: "Post", exact: true }));
  const quote = bobPage.getByRole("article").filter({ hasText: "Look at that" }).getByRole("blockquote");
  const picture = quote.getByRole("img", { name: "A lighthouse" });
  await picture.waitFor();
  await checkVariants(bobPage, "files-quoted");
  return {
    width_px: (await picture.boundingBox()).width,
    names: await quote.getByRole("listitem").allInnerTexts(),
  };
}

/** Pastes a picture into the message field, or drops it there. */
async function give(page, how) {
  const field = page.getByRole("textbox", { name: /^Message/ });
  await field.evaluate(
    (element, { content, kind }) => {
      const name = kind === "paste" ? "pasted.png" : "dropped.png";
      const transfer = new DataTransfer();
      transfer.items.add(new File([new Uint8Array(content)], name, { type: "image/png" }));
      const event =
        kind === "paste"
          ? new ClipboardEvent("paste", { clipboardData: transfer, bubbles: true, cancelable: true })
          : new DragEvent("drop", { dataTransfer: transfer, bubbles: true, cancelable: true });
      element.dispatchEvent(event);
    },
    { content: bytes, kind: how },
  );
}
