/**
 * Scrolls up through a long topic in a real Chromium; prints how smooth it was as one line of JSON.
 *
 * Standard input: {url, chromium, token, topicId, newest, rows}; each message's text ends with its number. A task of
 * the main thread is measured by its processor time in Chromium's trace, because other processes on the same cores
 * delay it. Its wall-clock time is reported as well. Exit code 1 when no rows came.
 */
import { launch, open, readOrder } from "./visitor.mjs";

const TICK_PX = -600;
const PATIENCE_MS = 15_000;

const { url, chromium, token, topicId, newest, rows } = readOrder();
const visitors = await launch(chromium, {
  args: ["--no-sandbox", "--disable-gpu", "--js-flags=--expose-gc"],
});

try {
  const page = await open(visitors, url, token, `/topic/${topicId}`);
  const probe = await page.context().newCDPSession(page);
  await page.getByTestId("timeline").hover();
  await watchFrames(page);
  await visitors.browser.startTracing(page, { categories: ["toplevel"] });
  const begun_ms = Date.now();
  const samples = [];
  let rows_max = 0;
  for (const share of [0.1, 0.25, 0.5, 0.75, 1]) {
    rows_max = Math.max(rows_max, await scrollTo(page, newest - Math.round(rows * share)));
    samples.push(await heap_bytes(probe));
  }
  const took_ms = Date.now() - begun_ms;
  const tasks = tasksOf(await visitors.browser.stopTracing());
  const frames_ms = await page.evaluate(() => globalThis.frames_ms.sort((a, b) => a - b));
  const { complaints } = visitors;
  const late = (share) => Math.round(frames_ms[Math.floor(frames_ms.length * share)] ?? 0);
  const frames = { count: frames_ms.length, p50: late(0.5), p99: late(0.99), max: late(0.9999) };
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
      took_ms,
      frames,
      complaints,
    }),
  );
} finally {
  await visitors.browser.close();
}

/**
 * Returns every task of the page's main thread, with microseconds of processor time (`tdur`) and wall-clock time
 * (`dur`).
 */
function tasksOf(trace) {
  const { traceEvents: events } = JSON.parse(trace);
  const thread = ({ pid, tid }) => `${pid} ${tid}`;
  const main = new Set(
    events.filter(({ name, args }) => name === "thread_name" && args.name === "CrRendererMain").map(thread),
  );
  return events.filter(
    (event) => event.name === "ThreadControllerImpl::RunTask" && event.tdur && main.has(thread(event)),
  );
}

async function watchFrames(page) {
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

/** Scrolls until the message of that number is in the list. Returns the most rows that were in the DOM. */
async function scrollTo(page, number) {
  let rows_max = 0;
  let first = Number.POSITIVE_INFINITY;
  let moved_ms = Date.now();
  while (first > number) {
    await page.mouse.wheel(0, TICK_PX);
    const seen = await page.evaluate(() => {
      const shown = document.querySelectorAll("[data-message]");
      const text = shown[0]?.querySelector(".whitespace-pre-wrap")?.textContent ?? "";
      return { count: shown.length, first: Number(/\d+$/.exec(text)?.[0] ?? Number.NaN) };
    });
    rows_max = Math.max(rows_max, seen.count);
    if (seen.first < first) {
      first = seen.first;
      moved_ms = Date.now();
    } else if (Date.now() - moved_ms > PATIENCE_MS) throw new Error(`No rows came before ${first}.`);
  }
  return rows_max;
}

/** Returns the heap size after a garbage collection. */
async function heap_bytes(probe) {
  await probe.send("HeapProfiler.collectGarbage");
  return (await probe.send("Runtime.getHeapUsage")).usedSize;
}
