/** One open job: the job, its chart and its numbers, updated by events. */
import { useCallback, useEffect, useState } from "react";
import { type Api, request, useApi } from "../api/api";
import { createFeed, type TimelineFeed } from "../timeline/feed";
import { withChangedItem } from "../timeline/window";
import { useValue } from "../ui/value";
import { type CallTimes, type CurvePoint, callCurve, withPoint } from "./call-curve";
import { type CallStore, useCallStore } from "./call-store";
import {
  type CallJob,
  CallJobById,
  type CallTask,
  type CallTaskState,
  CallTasks,
  CallTimesPage,
} from "./operations";

export interface CallJobView {
  job: CallJob | null;
  error: unknown;
  points: readonly CurvePoint[];
  /** Whether the list is too long to load its past calls. `points` then begin when the job was opened. */
  isTooLongForCurve: boolean;
  retry(): void;
}

export function useJob(id: string): CallJobView {
  const api = useApi();
  const store = useCallStore();
  const streamStarts = useValue(store.streamStarts);
  const [job, setJob] = useState<CallJob | null>(null);
  const [error, setError] = useState<unknown>(null);
  const [points, setPoints] = useState<readonly CurvePoint[]>([]);
  const [isTooLongForCurve, setIsTooLongForCurve] = useState(false);
  const [attempt, setAttempt] = useState(0);

  // biome-ignore lint/correctness/useExhaustiveDependencies: each attempt and each stream start loads the job again.
  useEffect(() => {
    if (streamStarts === 0) return;
    let isCurrent = true;
    let hasNewerEvent = false;
    const livePoints: CurvePoint[] = [];
    const stop = store.onChange((event) => {
      if (!("job" in event) || event.job.id !== id) return;
      hasNewerEvent = true;
      setJob(event.job);
      const point = { at_ms: Date.parse(event.at), active: event.job.progress.active };
      livePoints.push(point);
      setPoints((current) => withPoint(current, point));
    });
    setError(null);
    // An event that arrived during the request is newer than the answer.
    request(api.direct, CallJobById, { id }).then(
      ({ callJob }) => isCurrent && !hasNewerEvent && setJob(callJob),
      (failure) => isCurrent && setError(failure),
    );
    loadCallTimes(api, id).then(
      (times) => {
        if (!isCurrent) return;
        setIsTooLongForCurve(times === null);
        setPoints(livePoints.reduce<readonly CurvePoint[]>(withPoint, callCurve(times ?? [])));
      },
      () => {}, // Without the past calls, the chart starts at the current time.
    );
    return () => {
      isCurrent = false;
      stop();
    };
  }, [api, store, id, streamStarts, attempt]);

  const retry = useCallback(() => setAttempt((current) => current + 1), []);
  return { job, error, points, isTooLongForCurve, retry };
}

const TIMES_PAGE_SIZE = 999;
/** For lists with more numbers than these pages hold, the chart starts when the job is opened. */
const TIMES_PAGES_MAX = 5;

/** Returns the times of the job's past calls; null if the list is too long. */
async function loadCallTimes({ direct }: Api, id: string): Promise<CallTimes[] | null> {
  const times: CallTimes[] = [];
  let afterRow = 0;
  for (let page = 0; page < TIMES_PAGES_MAX; page++) {
    const tasks = (await request(direct, CallTimesPage, { id, afterRow })).callJob?.tasks ?? [];
    times.push(...tasks);
    afterRow = tasks.at(-1)?.row ?? 0;
    if (tasks.length < TIMES_PAGE_SIZE) return times;
  }
  return null;
}

const TASKS_PAGE_SIZE = 100;

/** A phone number as a timeline item. Its row serves as its timestamp, because the list is ordered by rows. */
export type TaskEntry = CallTask & { timestamp: string };
const toTaskEntry = (task: CallTask): TaskEntry => ({ ...task, timestamp: String(task.row) });

/** Returns the job's phone numbers in list order, optionally only those in some states. Pages load while scrolling. */
export function useTasks(id: string, states: readonly CallTaskState[] | null): TimelineFeed<TaskEntry> {
  const { direct } = useApi();
  const store = useCallStore();
  const streamStarts = useValue(store.streamStarts);
  const [feed] = useState(() => {
    const unsupported = () =>
      Promise.reject(new Error("Numbers are loaded only downwards, from the first row."));
    const loadAfter = async (afterRow: number) => {
      const variables = { id, afterRow, limit: TASKS_PAGE_SIZE, states: states && [...states] };
      const tasks = (await request(direct, CallTasks, variables)).callJob?.tasks ?? [];
      return { items: tasks.map(toTaskEntry), hasOlder: false, hasNewer: tasks.length === TASKS_PAGE_SIZE };
    };
    return createFeed<TaskEntry>(
      {
        newest: () => loadAfter(0),
        newer: (row) => loadAfter(Number(row)),
        older: unsupported,
        around: unsupported,
      },
      Number.POSITIVE_INFINITY,
    );
  });
  useEffect(() => {
    if (streamStarts > 0) void feed.open(null);
  }, [feed, streamStarts]);
  useEffect(() => applyTaskEvents(store, feed, id, states), [store, feed, id, states]);
  return feed;
}

function applyTaskEvents(
  store: CallStore,
  feed: TimelineFeed<TaskEntry>,
  id: string,
  states: readonly CallTaskState[] | null,
) {
  return store.onChange((event) => {
    if (!("task" in event) || event.task.jobId !== id) return;
    const { task } = event;
    // A number that changes to a state outside the filter stays in the list and shows its new state.
    if (states === null || states.includes(task.state)) feed.put(toTaskEntry(task));
    else feed.apply((window) => withChangedItem(window, task.id, () => toTaskEntry(task)));
  });
}
