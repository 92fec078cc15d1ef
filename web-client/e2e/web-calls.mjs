/**
 * An operator launches a call list, in a real Chromium: list errors, limits, do-not-call, a paused job that then
 * completes, watched by a second operator. Prints a report as one line of JSON; exit code 1 when a step timed out.
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
  // No call can start before the limit is raised, so the next steps do not depend on timing.
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

/** Returns the links that a user without the operator role sees. */
async function refused() {
  const max = await open(tokens.max, "/calls");
  await max.getByText("Calls are for operators").waitFor();
  await look(max, "calls-forbidden");
  const links = await max.getByRole("navigation", { name: "Screens" }).getByRole("link").allInnerTexts();
  await max.context().close();
  return links;
}

/** Returns the errors of a pasted list: line, column, value, reason. */
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

/** Launches a list from a file. Returns the number of its tasks. */
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

/** Opens the same job as another operator. */
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

/** Adds a number to the do-not-call list and raises the limits, so that the other calls can start. */
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

/** Waits until both pages show the end of the job without a reload. */
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

/** Launches a list with errors through the API. Returns the alert that the job shows. */
async function rejected(page) {
  const launch = "mutation ($input: LaunchCallJobInput!) { launchCallJob(input: $input) { id } }";
  const input = { name: "Careless", scenario: "Hello", csv: BAD };
  const { launchCallJob } = await ask(tokens.olga, launch, { input });
  await visit(page, `/callJob/${launchCallJob.id}`);
  await page.getByTestId("row-errors").locator("[data-row]").nth(1).waitFor();
  await look(page, "calls-rejected");
  return await page.getByRole("alert").innerText();
}
