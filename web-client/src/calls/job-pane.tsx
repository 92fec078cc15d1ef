/** One job: its actions, progress, chart, call results and numbers. */

import { useState } from "react";
import { hrefOf } from "../app/router";
import { dateAndTime, timeOrDate } from "../i18n/times";
import { Badge } from "../ui/badge";
import { Icon } from "../ui/icons";
import { PageTitle } from "../ui/page-title";
import { useTranslation } from "../ui/preferences";
import { ErrorState, LoadingState } from "../ui/states";
import { useValue } from "../ui/value";
import { useCallStore } from "./call-store";
import { CurveChart } from "./curve-chart";
import { type CallJobView, useJob } from "./job";
import { JobActions } from "./job-actions";
import { RejectedRows } from "./lists/rejected-rows";
import type { CallJob } from "./operations";
import { CallOutcomes } from "./outcomes";
import { CallJobProgressBar } from "./progress-bar";
import {
  finishedCount,
  isUnfinished,
  JOB_TONES,
  PROGRESS_PARTS,
  type ProgressPart,
  windowText,
} from "./state-styles";
import { TaskList } from "./task-list";

export function JobPane({ id }: { id: string }) {
  const view = useJob(id);
  const [scroller, setScroller] = useState<HTMLElement | null>(null);
  if (view.error && !view.job) return <ErrorState error={view.error} retry={view.retry} />;
  if (!view.job) return <LoadingState rows={8} />;
  return (
    <section aria-labelledby="job-name" className="flex h-full min-h-0 flex-col">
      <JobHeader job={view.job} />
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a scrollable area must be reachable by keyboard. */}
      <div ref={setScroller} tabIndex={0} className="thin-scroll relative min-h-0 grow overflow-y-auto">
        <div className="mx-auto max-w-5xl px-3 pb-16 sm:px-6">
          <JobFacts job={view.job} />
          {view.job.state === "REJECTED" ? (
            <RejectedRows job={view.job} />
          ) : (
            <JobResults view={view} job={view.job} scroller={scroller} />
          )}
        </div>
      </div>
    </section>
  );
}

function JobHeader({ job }: { job: CallJob }) {
  const { t } = useTranslation();
  return (
    <header className="flex min-h-14 shrink-0 flex-wrap items-center gap-x-3 gap-y-1 border-b border-line px-3 py-2 sm:px-5">
      <a
        href={hrefOf({ name: "calls" })}
        aria-label={t("back")}
        className="rounded-full p-2 text-quiet hover:bg-hover md:hidden"
      >
        <Icon name="back" />
      </a>
      <PageTitle name={job.name} />
      <h1 id="job-name" className="min-w-0 truncate text-lg font-semibold">
        {job.name}
      </h1>
      <span data-job-state={job.state} role="status">
        <Badge tone={JOB_TONES[job.state]}>{t(`callState.${job.state}`)}</Badge>
      </span>
      <span className="grow" />
      <JobActions job={job} />
    </header>
  );
}

function JobFacts({ job }: { job: CallJob }) {
  const { t, language } = useTranslation();
  const created = new Date(job.createdAt);
  const facts = [t("callJob.created", { time: dateAndTime(language, created) })];
  if (job.state === "SCHEDULED" && job.startAt)
    facts.push(t("callJob.startAt", { time: dateAndTime(language, new Date(job.startAt)) }));
  if (job.window) facts.push(windowText(t, language, job.window));
  return (
    <div className="flex flex-col gap-1 pt-4 text-sm text-quiet">
      <p className="flex flex-wrap gap-x-4">
        {facts.map((fact) => (
          <span key={fact}>{fact}</span>
        ))}
      </p>
      <p className="line-clamp-3 max-w-3xl">
        {t("callJob.call")}: <span className="text-ink">{job.scenario}</span>
      </p>
    </div>
  );
}

interface CallJobResultsProps {
  view: CallJobView;
  job: CallJob;
  scroller: HTMLElement | null;
}

function JobResults({ view, job, scroller }: CallJobResultsProps) {
  const { t } = useTranslation();
  const limits = useValue(useCallStore().limits);
  const [part, setPart] = useState<ProgressPart | null>(null);
  return (
    <>
      <JobProgress job={job} chosen={part} choose={(next) => setPart(next === part ? null : next)} />
      <div className="mt-6 grid gap-6 lg:grid-cols-[minmax(0,3fr)_minmax(0,2fr)]">
        <section aria-labelledby="curve">
          <h2 id="curve" className="mb-2 font-semibold">
            {t("callJob.curve")}
          </h2>
          {view.isTooLongForCurve && <p className="mb-2 text-quiet">{t("callJob.curveTooLong")}</p>}
          {view.points.length > 0 && (
            <CurveChart
              points={view.points}
              limit={limits?.concurrentCalls ?? null}
              isLive={job.progress.active > 0}
            />
          )}
          {view.points.length === 0 && !view.isTooLongForCurve && (
            <p className="text-quiet">{t("callJob.curveNone")}</p>
          )}
        </section>
        <section aria-labelledby="outcomes">
          <h2 id="outcomes" className="mb-2 font-semibold">
            {t("callJob.outcomes")}
          </h2>
          <CallOutcomes progress={job.progress} />
        </section>
      </div>
      <TaskList key={part} job={job} part={part} scroller={scroller} onShowAll={() => setPart(null)} />
    </>
  );
}

interface JobProgressProps {
  job: CallJob;
  chosen: ProgressPart | null;
  choose: (part: ProgressPart) => void;
}

function JobProgress({ job, chosen, choose }: JobProgressProps) {
  const { t, language } = useTranslation();
  const { progress, estimatedEndAt } = job;
  const formatNumber = (value: number) => value.toLocaleString(language);
  return (
    <section
      aria-label={t("callProgress.of", { done: finishedCount(progress), total: progress.total })}
      className="mt-5"
    >
      <p className="mb-2 flex flex-wrap items-baseline justify-between gap-x-4">
        <span className="text-2xl font-semibold tabular-nums" data-testid="done">
          {formatNumber(finishedCount(progress))}
          <span className="text-base font-normal text-quiet">
            {" "}
            / {t("callProgress.numbers", { count: progress.total })}
          </span>
        </span>
        {isUnfinished(job) && (
          <span className="text-quiet">
            {estimatedEndAt
              ? t("callJob.end", { time: timeOrDate(language, new Date(estimatedEndAt), new Date()) })
              : t("callJob.endNever")}
          </span>
        )}
      </p>
      <CallJobProgressBar progress={progress} className="h-3" />
      <ul className="mt-3 flex flex-wrap gap-1.5">
        {PROGRESS_PARTS.filter(({ part }) => progress[part] > 0 || part === chosen).map(
          ({ part, colour }) => (
            <li key={part}>
              <button
                type="button"
                aria-pressed={part === chosen}
                onClick={() => choose(part)}
                className="inline-flex min-h-8 items-center gap-2 rounded-full border border-line px-3 text-sm hover:bg-hover aria-pressed:border-accent aria-pressed:bg-glow"
              >
                <span aria-hidden="true" className={`size-2.5 rounded-full ${colour}`} />
                {t(`callProgress.${part}`)}
                <span className="font-semibold tabular-nums">{formatNumber(progress[part])}</span>
              </button>
            </li>
          ),
        )}
      </ul>
    </section>
  );
}
