/** The organization's call jobs while the calls screen is open: the list, the limits, and what happens to either. */
import { createContext, useContext } from "react";
import type { CombinedError } from "urql";
import { type Api, ask, listen } from "../api/api";
import { createFeed, type Feed } from "../timeline/feed";
import { createValue, type Value } from "../ui/value";
import {
  CallEvents,
  type CallJob,
  CallJobs,
  type CallLimits,
  CallLimitsNow,
  type CallTask,
} from "./operations";

export type DeskEvent =
  /** `at` is the server's time of the change. */
  { job: CallJob; at: string } | { task: CallTask };

export interface Desk {
  jobs: Feed<CallJob>;
  limits: Value<CallLimits | null>;
  /** Grows each time the stream begins anew: what was read before may be out of date. 0 before the first time. */
  ready: Value<number>;
  /** Why events ended, null while they come. */
  ended: Value<CombinedError | null>;
  /** Hears of jobs and numbers until the returned function is called. */
  on(listener: (event: DeskEvent) => void): () => void;
  /** The server's time, as far as events tell it. */
  now_ms(): number;
  /** A job as a mutation answered it. */
  put(job: CallJob): void;
  stop(): void;
}

export function openDesk({ direct }: Api): Desk {
  const unused = () => Promise.reject(new Error("The list of jobs only grows older."));
  const before = async (latest: string, inclusive: boolean) =>
    (await ask(direct, CallJobs, { latest, inclusive })).page;
  const jobs = createFeed<CallJob>(
    {
      newest: () => before("now", true),
      older: (than) => before(than, false),
      newer: unused,
      around: unused,
    },
    5_000,
  );
  const limits = createValue<CallLimits | null>(null);
  const ready = createValue(0);
  const ended = createValue<CombinedError | null>(null);
  // How far this machine's clock is ahead: what came fastest tells it best.
  let ahead_ms = Number.POSITIVE_INFINITY;
  const now_ms = () => Date.now() - (Number.isFinite(ahead_ms) ? ahead_ms : 0);
  const listeners = new Set<(event: DeskEvent) => void>();

  function tell(event: DeskEvent): void {
    if ("job" in event) jobs.put(event.job);
    for (const listener of listeners) listener(event);
  }

  function begin(): void {
    void jobs.open(null);
    ask(direct, CallLimitsNow, {}).then(
      ({ callLimits }) => limits.set(callLimits),
      () => {}, // The list says what failed; the limits come with the next beginning.
    );
    ready.set(ready.get() + 1);
  }

  const stop = listen(
    direct,
    CallEvents,
    {},
    ({ jobEvents: event }) => {
      ahead_ms = Math.min(ahead_ms, Date.now() - Date.parse(event.at));
      if (event.__typename === "StreamReady") !event.resumed && begin();
      else if (event.__typename === "CallJobChanged") tell({ job: event.job, at: event.at });
      else if (event.__typename === "CallTaskChanged") tell({ task: event.task });
      else if (event.__typename === "CallLimitsChanged") limits.set(event.limits);
    },
    (error) => ended.set(error),
  );

  return {
    jobs,
    limits,
    ready,
    ended,
    on(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    now_ms,
    put: (job) => tell({ job, at: new Date(now_ms()).toISOString() }),
    stop,
  };
}

const DeskContext = createContext<Desk | null>(null);
export const DeskProvider = DeskContext.Provider;

export function useDesk(): Desk {
  const desk = useContext(DeskContext);
  if (desk === null) throw new Error("There is no DeskProvider above this component.");
  return desk;
}
