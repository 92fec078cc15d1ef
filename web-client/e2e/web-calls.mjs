/**
 * An operator has a list called, in a real Chromium: what is wrong with a list, limits, do-not-call, a job with a pause to
 * its end, watched by somebody else. Prints what was seen as one line of JSON; exit code 1 when a step did not happen.
 *
 * Standard input: {url, chromium, tokens: {ada, olga, max}, screenshots}.
 */
import { beginLooking } from "./looking.mjs";
import { readOrder, go as visit } from "./visitor.mjs";

const NUMBERS = 10;
const LISTED = "+819010000003";
const GOOD = `phone_number,name\n${Array.from({ length: NUMBERS }, (_, n) => `+8190${10_000_000 + n},花子 ${n}\n`).join("")}`;
const BAD = "phone_number,name\n+819012345678,Ann\n090-1234-5678,Ben\n+8190123,Cat\n";
const LIMIT = "mutation ($input: CallLimitsInput!) { setCallLimits(input: $input) { concurrentCalls } }";

const { tokens, ...where } = readOrder();
const { seen, ask, open, look, close } = await beginLooking(where);

try {
  // Nothing begins before it is let: what follows waits for no clock.
  await ask(tokens.ada, LIMIT, { input: { concurrentCalls: 0, callsPerSecond: 20 } });
  const story = { member: await refused() };
  const ada = await open(tokens.ada, "/calls");
  await ada.getByText("No call lists yet").waitFor();
  await look(ada, "calls-empty");
  story.errors = await badList(ada);
  story.good = await goodList(ada);
  const olga = await watching(ada);
  story.paused = await pause(ada, olga);
  story.rules = await rules(ada);
  story.job = await toTheEnd(ada, olga);
  story.rejected = await rejected(olga);
  console.log(JSON.stringify({ ...story, ...seen }));
} finally {
  await close();
}

/** What somebody sees who is no operator. */
async function refused() {
  const max = await open(tokens.max, "/calls");
  await max.getByText("Calls are for operators").waitFor();
  await look(max, "calls-forbidden");
  const links = await max.getByRole("navigation", { name: "Screens" }).getByRole("link").allInnerTexts();
  await max.context().close();
  return links;
}

/** The errors of a pasted list: line, column, value, reason. */
async function badList(page) {
  await page.getByRole("link", { name: "New list" }).first().click();
  await page.getByRole("textbox", { name: "Numbers" }).fill(BAD);
  const table = page.getByTestId("row-errors");
  await table.locator("[data-row]").nth(1).waitFor();
  await look(page, "calls-errors");
  const rows = await table
    .locator("[data-row]")
    .evaluateAll((found) => found.map((row) => [...row.cells].map((cell) => cell.innerText)));
  return { rows, launchable: await page.getByRole("button", { name: "Launch" }).isEnabled() };
}

/** A file as a spreadsheet saves it; launched, it is a job. */
async function goodList(page) {
  await page.getByRole("textbox", { name: "Name" }).fill("Reminders");
  await page.getByRole("textbox", { name: "Scenario" }).fill("Say hello to {name}.");
  const file = { name: "reminders.csv", mimeType: "text/csv", buffer: Buffer.from(GOOD) };
  await page.locator('input[type="file"]').setInputFiles(file);
  await page.getByText(`${NUMBERS} rows, no errors`).waitFor();
  await page.getByText("this list would never finish").waitFor();
  await page.getByText("Schedule and retries").click();
  await look(page, "calls-good-list");
  await page.getByRole("button", { name: "Launch" }).click();
  await page.locator('[data-job-state="RUNNING"]').waitFor();
  return await page.locator("[data-task]").count();
}

/** Somebody else looks at the same job. */
async function watching(page) {
  const id = await page.locator('a[aria-current="page"][data-job]').getAttribute("data-job");
  const olga = await open(tokens.olga, `/callJob/${id}`);
  await olga.locator('[data-job-state="RUNNING"]').waitFor();
  return olga;
}

async function pause(page, other) {
  await page.getByRole("button", { name: "Pause" }).click();
  await other.locator('[data-job-state="PAUSED"]').waitFor();
  await look(other, "calls-paused");
  await other.getByRole("button", { name: "Resume" }).click();
  await page.locator('[data-job-state="RUNNING"]').waitFor();
  return await page.getByTestId("done").innerText();
}

/** A number is kept from being called, and the limits let the others begin. */
async function rules(page) {
  await page.getByRole("link", { name: "Limits and do-not-call" }).click();
  await page.getByRole("textbox", { name: "Phone numbers" }).fill(LISTED);
  await page.getByRole("button", { name: "Add to list" }).click();
  await page.getByText("On the do-not-call list").waitFor();
  await look(page, "calls-rules");
  const limit = page.getByRole("spinbutton", { name: "Concurrent calls" });
  await limit.fill("5");
  await page.getByRole("button", { name: "Save" }).click();
  await page.getByText("Limits saved").waitFor();
  return await limit.inputValue();
}

/** Both see the job end without loading anything anew. */
async function toTheEnd(page, other) {
  await other.locator('[data-job-state="COMPLETED"]').waitFor({ timeout: 60_000 });
  await other.locator('[data-task-state="SKIPPED"]').waitFor();
  await other.getByRole("img", { name: /^Calls in progress: 0 now/ }).waitFor();
  await look(other, "calls-completed");
  const left = ["QUEUED", "DIALLING", "IN_CALL"].map((state) => `[data-task-state="${state}"]`).join(",");
  await other.locator(left).first().waitFor({ state: "detached" });
  await page.locator("[data-job]").filter({ hasText: "Completed" }).waitFor();
  const outcomes = await other
    .locator("[data-outcome]")
    .evaluateAll((rows) => rows.map((row) => Number(row.lastElementChild.firstChild.data)));
  return {
    done: await other.getByTestId("done").innerText(),
    curve: await other.getByRole("img", { name: /^Calls in progress/ }).getAttribute("aria-label"),
    outcomes: outcomes.reduce((sum, count) => sum + count, 0),
    skipped: await other.locator('[data-task-state="SKIPPED"]').innerText(),
  };
}

/** A list that a program launched with an error: the job says which. */
async function rejected(page) {
  const launch = "mutation ($input: LaunchCallJobInput!) { launchCallJob(input: $input) { id } }";
  const input = { name: "Careless", scenario: "Hello", csv: BAD };
  const { launchCallJob } = await ask(tokens.olga, launch, { input });
  await visit(page, `/callJob/${launchCallJob.id}`);
  await page.getByTestId("row-errors").locator("[data-row]").nth(1).waitFor();
  await look(page, "calls-rejected");
  return await page.getByRole("alert").innerText();
}
