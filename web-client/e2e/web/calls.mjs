/**
 * An operator launches a call list in a real Chromium: list errors, limits, the do-not-call list, and a job that is
 * paused and then completes. A second operator sees each change. Prints a report as one line of JSON. The exit code is
 * 1 when a step timed out.
 *
 * Standard input: {url, chromium, tokens: {ada, olga, max}, screenshots}.
 */

import { navigate, readInput } from "../browser.mjs";
import { openScreenChecker } from "../screen-checker.mjs";

const NUMBER_COUNT = 10;
const DO_NOT_CALL_NUMBER = "+819010000003";
const VALID_LIST = `phone_number,name\n${Array.from({ length: NUMBER_COUNT }, (_, n) => `+8190${10_000_000 + n},花子 ${n}\n`).join("")}`;
const LIST_WITH_ERRORS = "phone_number,name\n+819012345678,Ann\n090-1234-5678,Ben\n+8190123,Cat\n";
const SET_LIMITS = "mutation ($input: CallLimitsInput!) { setCallLimits(input: $input) { concurrentCalls } }";

const { tokens, ...options } = readInput();
const { findings, run, open, checkScreen, close } = await openScreenChecker(options);

try {
  // No call can start before the limit is raised, so the next steps do not depend on timing.
  await run(tokens.ada, SET_LIMITS, { input: { concurrentCalls: 0, callsPerSecond: 20 } });
  const report = { memberLinks: await linksOfMember() };
  const ada = await open(tokens.ada, "/calls");
  await ada.getByText("No call lists yet").waitFor();
  await checkScreen(ada, "calls-empty");
  report.listErrors = await enterListWithErrors(ada);
  await launchList(ada);
  const olga = await openAsSecondOperator(ada);
  report.doneBeforeLimitIsRaised = await pauseAndResume(ada, olga);
  report.concurrentCalls = await changeRules(ada);
  report.job = await waitUntilCompleted(ada, olga);
  report.rejectedList = await launchRejectedList(olga);
  console.log(JSON.stringify({ ...report, ...findings }));
} finally {
  await close();
}

/** Returns the links that a user without the operator role sees. */
async function linksOfMember() {
  const max = await open(tokens.max, "/calls");
  await max.getByText("Only operators can open this screen").waitFor();
  await checkScreen(max, "calls-forbidden");
  const links = await max.getByRole("navigation", { name: "Screens" }).getByRole("link").allInnerTexts();
  await max.context().close();
  return links;
}

/** Returns the errors of a pasted list: line, column, value, reason. */
async function enterListWithErrors(page) {
  await page.getByRole("link", { name: "New list" }).first().click();
  await page.getByRole("textbox", { name: "Numbers", exact: true }).fill(LIST_WITH_ERRORS);
  const table = page.getByTestId("row-errors");
  await table.locator("[data-row]").nth(1).waitFor();
  await checkScreen(page, "calls-errors");
  const rows = await table
    .locator("[data-row]")
    .evaluateAll((tableRows) => tableRows.map((row) => [...row.cells].map((cell) => cell.innerText)));
  return { rows, canLaunch: await page.getByRole("button", { name: "Launch" }).isEnabled() };
}

/** Launches a list from a file. */
async function launchList(page) {
  await page.getByRole("textbox", { name: "Name" }).fill("Reminders");
  await page.getByRole("textbox", { name: "Scenario" }).fill("Say hello to {name}.");
  const file = { name: "reminders.csv", mimeType: "text/csv", buffer: Buffer.from(VALID_LIST) };
  await page.locator('input[type="file"]').setInputFiles(file);
  await page.getByText(`${NUMBER_COUNT} rows, no errors`).waitFor();
  await page.getByText("this list would never finish").waitFor();
  await page.getByText("Schedule and retries").click();
  await checkScreen(page, "calls-good-list");
  await page.getByRole("button", { name: "Launch" }).click();
  await page.locator('[data-job-state="RUNNING"]').waitFor();
}

/** Opens the job of the page as another operator. */
async function openAsSecondOperator(page) {
  const id = await page.locator('a[aria-current="page"][data-job]').getAttribute("data-job");
  const olga = await open(tokens.olga, `/callJob/${id}`);
  await olga.locator('[data-job-state="RUNNING"]').waitFor();
  return olga;
}

/** Pauses and resumes the job. Returns the page's text for the number of finished phone numbers. */
async function pauseAndResume(page, other) {
  await page.getByRole("button", { name: "Pause" }).click();
  await other.locator('[data-job-state="PAUSED"]').waitFor();
  await checkScreen(other, "calls-paused");
  await other.getByRole("button", { name: "Resume" }).click();
  await page.locator('[data-job-state="RUNNING"]').waitFor();
  return await page.getByTestId("done").innerText();
}

/**
 * Adds a number to the do-not-call list, and raises the limit so that the other calls can start. Returns the new limit
 * of concurrent calls.
 */
async function changeRules(page) {
  await page.getByRole("link", { name: "Limits and do-not-call" }).click();
  await page.getByRole("textbox", { name: "Phone numbers" }).fill(DO_NOT_CALL_NUMBER);
  await page.getByRole("button", { name: "Add to list" }).click();
  await page.getByText("On the do-not-call list").waitFor();
  await checkScreen(page, "calls-rules");
  const limit = page.getByRole("spinbutton", { name: "Concurrent calls" });
  await limit.fill("5");
  await page.getByRole("button", { name: "Save" }).click();
  await page.getByText("Limits saved").waitFor();
  return await limit.inputValue();
}

/** Waits until both pages show the completed job without a reload. Returns what the second page shows. */
async function waitUntilCompleted(page, other) {
  await other.locator('[data-job-state="COMPLETED"]').waitFor({ timeout: 60_000 });
  await other.locator('[data-task-state="SKIPPED"]').waitFor();
  await other.getByRole("img", { name: /^Calls in progress: 0 now/ }).waitFor();
  await checkScreen(other, "calls-completed");
  const unfinished = ["QUEUED", "DIALLING", "IN_CALL"]
    .map((state) => `[data-task-state="${state}"]`)
    .join(",");
  await other.locator(unfinished).first().waitFor({ state: "detached" });
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
async function launchRejectedList(page) {
  const launch = "mutation ($input: LaunchCallJobInput!) { launchCallJob(input: $input) { id } }";
  const input = { name: "Careless", scenario: "Hello", csv: LIST_WITH_ERRORS };
  const { launchCallJob } = await run(tokens.olga, launch, { input });
  await navigate(page, `/callJob/${launchCallJob.id}`);
  await page.getByTestId("row-errors").locator("[data-row]").nth(1).waitFor();
  await checkScreen(page, "calls-rejected");
  return await page.getByRole("alert").innerText();
}
