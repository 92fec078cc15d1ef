/**
 * Scrolls up through a long topic in a real Chromium. Prints task times, row counts and heap sizes as one line of JSON.
 *
 * Standard input: {url, chromium, token, topicId, newest, rows}. The text of each message ends with its number:
 * `newest` is the number of the newest message, and `rows` is how many messages the script scrolls up. Tasks of the main
 * thread are measured by their processor time in Chromium's trace. Other processes on the same cores lengthen their
 * wall-clock time. Both times are reported. The exit code is 1 when no older rows were loaded.
 */
import { launch, openPage, readInput } from "../browser.mjs";

const WHEEL_STEP_PX = -600;
const TIMEOUT_MS = 15_000;

const { url, chromium, token, topicId, newest, rows } = readInput();
const session = await launch(chromium, {
  args: ["--no-sandbox", "--disable-gpu", "--js-flags=--expose-gc"],
});

try {
  const page = await openPage(session, url, token, `/topic/${topicId}`);
  const devTools = await page.context().newCDPSession(page);
  await page.getByTestId("timeline").hover();
  await recordFrames(page);
  await session.browser.startTracing(page, { categories: ["toplevel"] });
  const began_ms = Date.now();
  const samples = [];
  let rows_max = 0;
  for (const share of [0.1, 0.25, 0.5, 0.75, 1]) {
    rows_max = Math.max(rows_max, await scrollTo(page, newest - Math.round(rows * share)));
    samples.push(await heap_bytes(devTools));
  }
  const duration_ms = Date.now() - began_ms;
  const tasks = tasksOf(await session.browser.stopTracing());
  const frames_ms = await page.evaluate(() => globalThis.frames_ms.sort((a, b) => a - b));
  const { pageErrors } = session;
  const percentile = (share) => Math.round(frames_ms[Math.floor(frames_ms.length * share)] ?? 0);
  const frames = {
    count: frames_ms.length,
    p50: percentile(0.5),
    p99: percentile(0.99),
    max: percentile(0.9999),
  };
  const longest = (times_us) =>
    times_us
      .sort((a, b) => b - a)
      .slice(0, 10)
      .map((time_us) => time_us / 1000);
  const longest_ms = longest(tasks.map(({ tdur }) => tdur));
  const longest_by_clock_ms = longest(tasks.map(({ dur }) => dur));
  console.log(
    JSON.stringify({
      tasks: tasks.length,
      longest_ms,
      longest_by_clock_ms,
      rows_max,
      heap_bytes: samples,
      duration_ms,
      frames,
      pageErrors,
    }),
  );
} finally {
  await session.browser.close();
}

/**
 * Returns every task of the page's main thread, with microseconds of processor time (`tdur`) and wall-clock time
 * (`dur`).
 */
function tasksOf(trace) {
  const { traceEvents: events } = JSON.parse(trace);
  const threadOf = ({ pid, tid }) => `${pid} ${tid}`;
  const mainThreads = new Set(
    events.filter(({ name, args }) => name === "thread_name" && args.name === "CrRendererMain").map(threadOf),
  );
  return events.filter(
    (event) =>
      event.name === "ThreadControllerImpl::RunTask" && event.tdur && mainThreads.has(threadOf(event)),
  );
}

/** Records the times between the page's animation frames. */
async function recordFrames(page) {
  await page.evaluate(() => {
    globalThis.frames_ms = [];
    let last = performance.now();
    requestAnimationFrame(function frame(now) {
      globalThis.frames_ms.push(now - last);
      last = now;
      requestAnimationFrame(frame);
    });
  });
}

/** Scrolls up until the message with this number is loaded. Returns the largest number of rows in the DOM. */
async function scrollTo(page, number) {
  let rows_max = 0;
  let firstNumber = Number.POSITIVE_INFINITY;
  let progressed_ms = Date.now();
  while (firstNumber > number) {
    await page.mouse.wheel(0, WHEEL_STEP_PX);
    const list = await page.evaluate(() => {
      const messages = document.querySelectorAll("[data-message]");
      const text = messages[0]?.querySelector(".whitespace-pre-wrap")?.textContent ?? "";
      return { count: messages.length, first: Number(/\d+$/.exec(text)?.[0] ?? Number.NaN) };
    });
    rows_max = Math.max(rows_max, list.count);
    if (list.first < firstNumber) {
      firstNumber = list.first;
      progressed_ms = Date.now();
    } else if (Date.now() - progressed_ms > TIMEOUT_MS)
      throw new Error(`No rows were loaded before message ${firstNumber}.`);
  }
  return rows_max;
}

/** Returns the heap size after a garbage collection. */
async function heap_bytes(devTools) {
  await devTools.send("HeapProfiler.collectGarbage");
  return (await devTools.send("Runtime.getHeapUsage")).usedSize;
}
