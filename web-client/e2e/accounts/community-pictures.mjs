/**
 * The picture and the banner of a community in a real Chromium, by keyboard alone. An owner chooses them in the settings,
 * an open page of another member follows, and the owner removes them. Prints a report as one line of JSON.
 *
 * Standard input: {url, chromium, tokens: {ann, bob}, picture, screenshots}. `picture` is the path of a PNG file.
 */
import { navigate, readInput } from "../browser.mjs";
import { press } from "../keyboard.mjs";
import { openScreenChecker } from "../screen-checker.mjs";

const NAME = "Beacons of the northern hills and the long coast";

const { tokens, picture, ...options } = readInput();
const { findings, run, open, checkVariants, close } = await openScreenChecker(options);

try {
  const id = await createCommunity();
  const others = await open(tokens.bob, "/chat");
  const letters = await others.locator(`nav img[data-avatar="${id}"]`).count();
  const page = await open(tokens.ann, `/community/${id}/settings`);
  await chooseFile(page, "Choose picture", {
    name: "beacon.png",
    mimeType: "image/png",
    buffer: Buffer.from("no picture"),
  });
  const refusal = await page.getByRole("alert").innerText();
  await checkVariants(page, "community-picture-refused");
  await chooseFile(page, "Choose picture", picture);
  await page.locator(`header img[data-avatar="${id}"]`).waitFor();
  await chooseFile(page, "Choose banner", picture);
  await page.locator("[data-banner] img").waitFor();
  await checkVariants(page, "community-pictures");
  await others.locator(`nav img[data-avatar="${id}"]`).waitFor();
  await checkVariants(others, "community-picture-in-list");
  await navigate(others, `/community/${id}/members`);
  const banner = others.locator("[data-banner] img");
  await banner.waitFor();
  const size = await banner.evaluate(async (image) => {
    await image.decode();
    return [image.naturalWidth, image.naturalHeight];
  });
  const buttons = await others.getByRole("button", { name: "Change picture" }).count();
  await press(page, page.getByRole("button", { name: "Remove banner" }));
  await banner.waitFor({ state: "detached" });
  await press(page, page.getByRole("button", { name: "Remove picture" }));
  await others.locator(`img[data-avatar="${id}"]`).first().waitFor({ state: "detached" });
  const { community } = await run(tokens.ann, `{ community(id: "${id}") { pictureUrl bannerUrl } }`);
  console.log(JSON.stringify({ letters, refusal, size, buttons, community, ...findings }));
} finally {
  await close();
}

/** Ann creates a community with a topic, which Bob joins. Returns its id. */
async function createCommunity() {
  const { createCommunity } = await run(
    tokens.ann,
    `mutation { createCommunity(input: {name: "${NAME}", description: "Who keeps which fire."}) { id } }`,
  );
  const { id } = createCommunity;
  await run(tokens.ann, `mutation { createTopic(input: {communityId: "${id}", title: "Watch"}) { id } }`);
  await run(tokens.bob, `mutation { joinCommunity(communityId: "${id}") { id } }`);
  return id;
}

/** Presses the button that opens the browser's file dialog, and chooses the file. */
async function chooseFile(page, name, file) {
  const dialog = page.waitForEvent("filechooser");
  await press(page, page.getByRole("button", { name }));
  await (await dialog).setFiles(file);
}
