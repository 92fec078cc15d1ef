/** The state of the calls screen while it is open: the job list and the limits, updated by events. */
import { createContext, useContext } from "react";
import type { CombinedError } from "urql";
import { type Api, request, subscribe } from "../api/api";
import { createFeed, type TimelineFeed } from "../timeline/feed";
import { createValue, type ObservableValue } from "../ui/value";
import {
  CallEvents,
  type CallJob,
  CallJobs,
  type CallLimits,
  type CallTask,
  CurrentCallLimits,
} from "./operations";

export type CallStoreEvent =
  /** A changed job, with the server's time of the change. */
  | { job: CallJob; at: string }
  /** A changed phone number. */
  | { task: CallTask };

export interface CallStore {
  jobs: TimelineFeed<CallJob>;
  limits: ObservableValue<CallLimits | null>;
  /**
   * How many times the event stream started without resuming. Such a start may have missed events, so data that was
   * read before it must be read again. 0 until the first start.
   */
  streamStarts: ObservableValue<number>;
  /** The error that ended the subscription; null while the subscription is running. */
  subscriptionError: ObservableValue<CombinedError | null>;
  /** Calls the listener for each change of a job or a phone number. Returns a function that removes the listener. */
  onChange(listener: (event: CallStoreEvent) => void): () => void;
  /** Returns the server's time in milliseconds, estimated from the times of events. */
  now_ms(): number;
  /** Updates the job list and the listeners with a job that a mutation returned. */
  put(job: CallJob): void;
  stop(): void;
}

export function openCallStore({ direct }: Api): CallStore {
  const unsupported = () => Promise.reject(new Error("The job list loads only older jobs."));
  const loadBefore = async (latest: string, inclusive: boolean) =>
    (await request(direct, CallJobs, { latest, inclusive })).page;
  const jobs = createFeed<CallJob>(
    {
      newest: () => loadBefore("now", true),
      older: (timestamp) => loadBefore(timestamp, false),
      newer: unsupported,
      around: unsupported,
    },
    5_000,
  );
  const limits = createValue<CallLimits | null>(null);
  const streamStarts = createValue(0);
  const subscriptionError = createValue<CombinedError | null>(null);
  // How far this computer's clock is ahead of the server's clock. The event with the least delay gives the best
  // estimate.
  let clockAhead_ms = Number.POSITIVE_INFINITY;
  const now_ms = () => Date.now() - (Number.isFinite(clockAhead_ms) ? clockAhead_ms : 0);
  const listeners = new Set<(event: CallStoreEvent) => void>();

  function emit(event: CallStoreEvent): void {
    if ("job" in event) jobs.put(event.job);
    for (const listener of listeners) listener(event);
  }

  function reload(): void {
    void jobs.open(null);
    request(direct, CurrentCallLimits, {}).then(
      ({ callLimits }) => limits.set(callLimits),
      () => {}, // The job list shows the failure. The limits are requested again at the stream's next start.
    );
    streamStarts.set(streamStarts.get() + 1);
  }

  const stop = subscribe(
    direct,
    CallEvents,
    {},
    ({ jobEvents: event }) => {
      clockAhead_ms = Math.min(clockAhead_ms, Date.now() - Date.parse(event.at));
      if (event.__typename === "StreamReady") !event.resumed && reload();
      else if (event.__typename === "CallJobChanged") emit({ job: event.job, at: event.at });
      else if (event.__typename === "CallTaskChanged") emit({ task: event.task });
      else if (event.__typename === "CallLimitsChanged") limits.set(event.limits);
    },
    (error) => subscriptionError.set(error),
  );

  return {
    jobs,
    limits,
    streamStarts,
    subscriptionError,
    onChange(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    now_ms,
    put: (job) => emit({ job, at: new Date(now_ms()).toISOString() }),
    stop,
  };
}

const CallStoreContext = createContext<CallStore | null>(null);
export const CallStoreProvider = CallStoreContext.Provider;

export function useCallStore(): CallStore {
  const store = useContext(CallStoreContext);
  if (store === null) throw new Error("There is no CallStoreProvider above this component.");
  return store;
}
