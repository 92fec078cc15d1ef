/** A query that is repeated when an event reports a changed publication. */
import { useEffect, useState } from "react";
import { subscribe, useApi } from "../api/api";
import { isRetryable, retryAfterMs } from "../api/failure";
import { PublicationEvents } from "./operations";

const REFRESH_INTERVAL_MIN_MS = 300;
const RETRY_WAIT_MS = 2_000;

export interface LiveQuery<T> {
  /** Null until the first response. */
  data: T | null;
  error: unknown;
  /** Whether `data` comes from the newest `load`. */
  isCurrent: boolean;
  refresh: () => void;
  /** Changes the data optimistically. */
  patch: (change: (data: T) => T) => void;
}

interface LiveQueryState<T> {
  data: T | null;
  error: unknown;
  /** The function that returned the data. */
  load: unknown;
}

/** Calls `load` at once, after each event, and again while the server can't be reached. With `jobId`, only after events of that scheduled post. */
export function useLiveQuery<T>(load: () => Promise<T>, jobId: string | null): LiveQuery<T> {
  const { direct } = useApi();
  const [state, setState] = useState<LiveQueryState<T>>({ data: null, error: null, load: null });
  const [refreshNow, setRefreshNow] = useState<() => void>(() => () => {});

  useEffect(() => {
    let isCurrent = true;
    const refresh = coalesceRuns(async () => {
      try {
        const data = await load();
        if (isCurrent) setState({ data, error: null, load });
      } catch (error) {
        if (!isCurrent) return null;
        setState((current) => ({ ...current, error }));
        if (isRetryable(error)) return retryAfterMs(error) ?? RETRY_WAIT_MS;
      }
      return null;
    }, REFRESH_INTERVAL_MIN_MS);
    setRefreshNow(() => refresh);
    refresh();
    const stop = subscribe(direct, PublicationEvents, { jobId }, ({ jobEvents: event }) => {
      if (event.__typename === "PublicationChanged") refresh();
      if (event.__typename === "StreamReady" && !event.resumed) refresh();
    });
    return () => {
      isCurrent = false;
      stop();
    };
  }, [direct, load, jobId]);

  const patch = (change: (data: T) => T) =>
    setState((current) => (current.data === null ? current : { ...current, data: change(current.data) }));
  const { data, error } = state;
  return { data, error, isCurrent: state.load === load, refresh: refreshNow, patch };
}

/**
 * Returns a function that starts a run. Calls during a run or the pause after it cause exactly one more run. A run that
 * returns a number of milliseconds is repeated after it.
 */
export function coalesceRuns(run: () => Promise<number | null>, pause_ms: number): () => void {
  let isRunning = false;
  let isRequested = false;
  async function runWhileRequested(): Promise<void> {
    isRunning = true;
    while (isRequested) {
      isRequested = false;
      const repeatAfter_ms = await run();
      if (repeatAfter_ms !== null) isRequested = true;
      await new Promise((resolve) => setTimeout(resolve, repeatAfter_ms ?? pause_ms));
    }
    isRunning = false;
  }
  return () => {
    isRequested = true;
    if (!isRunning) void runWhileRequested();
  };
}
