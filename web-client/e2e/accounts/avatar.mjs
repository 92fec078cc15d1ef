/**
 * The viewer's pictures, name, handle and bio in a real Chromium, by keyboard alone. A file that is no picture is refused.
 * A picture is sent, seen by another person, and removed. So are a banner and a bio, after one that is too long. A handle
 * is changed after one that is taken, and then no more. Prints a report as one line of JSON.
 *
 * Standard input: {url, chromium, tokens: {ann, bob}, picture, screenshots}. `picture` is the path of a PNG file.
 */
import { readInput } from "../browser.mjs";
import { expectFocus, press, replaceText, tabTo } from "../keyboard.mjs";
import { openScreenChecker } from "../screen-checker.mjs";

const { tokens, picture, ...options } = readInput();
const { findings, run, open, checkVariants, close } = await openScreenChecker(options);

try {
  await run(tokens.bob, "{ viewer { id } }");
  const page = await open(tokens.ann, "/person/ann");
  await chooseFile(page, "Choose picture", {
    name: "me.png",
    mimeType: "image/png",
    buffer: Buffer.from("<svg xmlns='http://www.w3.org/2000/svg'><script>alert(1)</script></svg>"),
  });
  const refusal = await page.getByRole("alert").innerText();
  await checkVariants(page, "avatar-refused");
  await chooseFile(page, "Choose picture", picture);
  await page.getByRole("button", { name: "Change picture" }).waitFor();
  await avatar(page).first().waitFor();
  await checkVariants(page, "avatar");
  const side = await avatar(page)
    .first()
    .evaluate(async (image) => {
      await image.decode();
      return [image.naturalWidth, image.naturalHeight];
    });
  const others = await open(tokens.bob, "/person/ann");
  await avatar(others).first().waitFor();
  const buttons = await others.getByRole("button", { name: "Change picture" }).count();
  await press(page, page.getByRole("button", { name: "Remove picture" }));
  await avatar(page).first().waitFor({ state: "detached" });
  const banner = await chooseBanner(page, others);
  const bio = await writeBio(page, others);
  const names = await changeNames(page, others);
  const { avatarUrl } = (await run(tokens.ann, "{ viewer { avatarUrl } }")).viewer;
  console.log(JSON.stringify({ refusal, side, buttons, avatarUrl, banner, bio, names, ...findings }));
} finally {
  await close();
}

/** Chooses a banner, which another page then shows, and removes it. Returns its size, and what is left. */
async function chooseBanner(page, others) {
  await chooseFile(page, "Choose banner", picture);
  await page.locator("[data-banner] img").waitFor();
  await checkVariants(page, "banner");
  await others.reload();
  const banner = others.locator("[data-banner] img");
  await banner.waitFor();
  const size = await banner.evaluate(async (image) => {
    await image.decode();
    return [image.naturalWidth, image.naturalHeight];
  });
  await press(page, page.getByRole("button", { name: "Remove banner" }));
  await page.locator("[data-banner]").waitFor({ state: "detached" });
  const left = (await run(tokens.ann, "{ viewer { bannerUrl } }")).viewer.bannerUrl;
  return { size, left };
}

/** Writes a bio, which another page then shows, and removes it. Returns what the pages said. */
async function writeBio(page, others) {
  await press(page, page.getByRole("button", { name: "Edit profile" }));
  const dialog = page.getByRole("dialog", { name: "Edit profile" });
  const field = dialog.getByRole("textbox", { name: "About you" });
  await tabTo(page, field);
  await page.keyboard.insertText("x".repeat(301));
  const tooLong = await dialog.getByRole("status").last().innerText();
  const canSave = await dialog.getByRole("button", { name: "Save" }).isEnabled();
  await checkVariants(page, "bio-too-long");
  await replaceText(page, field, "Sets up **beacons** on the northern hills");
  await checkVariants(page, "bio-dialog");
  await page.keyboard.press("Control+Enter");
  await page.locator("[data-bio] strong").waitFor();
  await expectFocus(page, page.getByRole("button", { name: "Edit profile" }));
  await checkVariants(page, "bio");
  await others.reload();
  const shown = await others.locator("[data-bio]").innerText();
  const bold = await others.locator("[data-bio] strong").innerText();
  const edits = await others.getByRole("button", { name: "Edit profile" }).count();
  await press(page, page.getByRole("button", { name: "Edit profile" }));
  await press(page, field, "Control+A");
  await page.keyboard.press("Delete");
  await press(page, dialog.getByRole("button", { name: "Save" }));
  await page.locator("[data-bio]").waitFor({ state: "detached" });
  const left = (await run(tokens.ann, "{ viewer { bio } }")).viewer.bio;
  return { tooLong, canSave, shown, bold, edits, left };
}

/** Changes name and handle, after a handle that is taken. Returns what the pages said. */
async function changeNames(page, others) {
  await press(page, page.getByRole("button", { name: "Edit profile" }));
  const dialog = page.getByRole("dialog", { name: "Edit profile" });
  const [name, handle] = ["Name", "Handle"].map((label) => dialog.getByRole("textbox", { name: label }));
  await expectFocus(page, name);
  await replaceText(page, name, "Hana");
  await replaceText(page, handle, "h n");
  const bad = await dialog.getByRole("alert").innerText();
  await replaceText(page, handle, "bob");
  await page.keyboard.press("Enter");
  const taken = await dialog.getByRole("alert").innerText();
  await expectFocus(page, handle);
  await checkVariants(page, "handle-taken");
  await replaceText(page, handle, "@Hana_2");
  await page.keyboard.press("Enter");
  await dialog.waitFor({ state: "detached" });
  await page.getByRole("heading", { name: "Hana" }).waitFor();
  await others.reload();
  await others.getByText("@hana_2").first().waitFor();
  await press(page, page.getByRole("button", { name: "Edit profile" }));
  await replaceText(page, handle, "hana_3");
  await page.keyboard.press("Enter");
  const later = await dialog.getByRole("alert").innerText();
  await checkVariants(page, "handle-later");
  return { bad, taken, later, ...(await run(tokens.ann, "{ viewer { name handle } }")).viewer };
}

function avatar(page) {
  return page.locator("img[data-avatar=ann]");
}

/** Presses the button that opens the browser's file dialog, and chooses the file. */
async function chooseFile(page, name, file) {
  const dialog = page.waitForEvent("filechooser");
  await press(page, page.getByRole("button", { name }));
  await (await dialog).setFiles(file);
}
