/**
 * Somebody looks for a community among more than a page of them, in a real Chromium. Prints what was seen as JSON.
 *
 * Standard input: {url, chromium, tokens: {ann, ben}, screenshots}.
 */
import { beginLooking } from "./looking.mjs";
import { readOrder } from "./visitor.mjs";

const COMMUNITIES = 60;
const IN_ONE_REQUEST = 15;

const { tokens, ...where } = readOrder();
const { seen, ask, open, close } = await beginLooking(where);

try {
  for (let n = 0; n < COMMUNITIES; n += IN_ONE_REQUEST) {
    const founded = Array.from({ length: IN_ONE_REQUEST }, (_, k) => {
      const name = `Hill ${String(n + k).padStart(2, "0")}`;
      return `c${k}: createCommunity(input: {name: "${name}", description: "A beacon."}) { id }`;
    });
    await ask(tokens.ann, `mutation { ${founded.join("\n")} }`);
  }
  const ben = await open(tokens.ben, "/browse");
  const rows = ben.getByRole("heading", { level: 2, name: /^Hill/ });
  await rows.first().waitFor();
  const first = await rows.count();
  await ben.getByRole("button", { name: "More communities" }).click();
  await ben.getByRole("heading", { name: `Hill ${COMMUNITIES - 1}` }).waitFor();
  const names = await rows.allInnerTexts();
  await ben.getByRole("button", { name: "Join Hill 55" }).click();
  await ben.getByRole("region", { name: "Hill 55" }).waitFor();
  console.log(JSON.stringify({ first, names, ...seen }));
} finally {
  await close();
}
