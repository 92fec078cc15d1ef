/** A job's numbers in list order, updated live and loaded while scrolling. */
import { useEffect, useRef } from "react";
import { Virtualizer } from "virtua";
import { downloadFile } from "../files/download";
import { Badge } from "../ui/badge";
import { Button } from "../ui/button";
import { type Translate, useTranslation } from "../ui/preferences";
import { ErrorState, LoadingState } from "../ui/states";
import { notify } from "../ui/toasts";
import { useValue } from "../ui/value";
import { useTasks } from "./job";
import type { CallJob, CallTask } from "./operations";
import { PROGRESS_PARTS, type ProgressPart, TASK_TONES } from "./state-styles";

const LOAD_WITHIN_PX = 900;

interface Props {
  job: CallJob;
  /** The part of the progress whose numbers are shown; null for all numbers. */
  part: ProgressPart | null;
  scroller: HTMLElement | null;
  onShowAll: () => void;
}

export function TaskList({ job, part, scroller, onShowAll }: Props) {
  const { t } = useTranslation();
  const states = PROGRESS_PARTS.find((each) => each.part === part)?.states ?? null;
  const feed = useTasks(job.id, states);
  const state = useValue(feed.state);
  const list = useRef<HTMLElement>(null);
  const scrollerRef = useRef(scroller);
  scrollerRef.current = scroller;

  // biome-ignore lint/correctness/useExhaustiveDependencies: after a short page, the end may still be visible.
  useEffect(() => {
    function loadIfNearEnd() {
      if (scroller && scroller.scrollHeight - scroller.scrollTop - scroller.clientHeight < LOAD_WITHIN_PX)
        void feed.loadNewer();
    }
    loadIfNearEnd();
    scroller?.addEventListener("scroll", loadIfNearEnd);
    return () => scroller?.removeEventListener("scroll", loadIfNearEnd);
  }, [scroller, feed, state]);

  return (
    <section ref={list} aria-labelledby="numbers" className="mt-8">
      <div className="mb-2 flex items-center gap-3">
        <h2 id="numbers" className="font-semibold">
          {t("callJob.numbers")}
        </h2>
        {part && (
          <Button kind="quiet" onClick={onShowAll} className="text-sm">
            {t(`callProgress.${part}`)} · {t("callJob.all")}
          </Button>
        )}
      </div>
      {state.phase === "loading" && <LoadingState rows={4} />}
      {state.phase === "failed" && <ErrorState error={state.error} retry={() => feed.open(null)} />}
      {state.phase === "ready" && state.window.items.length === 0 && (
        <p className="text-quiet">{t("callJob.noNumbers")}</p>
      )}
      {state.phase === "ready" && scroller && (
        <Virtualizer
          as="ol"
          item="li"
          data={state.window.items}
          scrollRef={scrollerRef}
          startMargin={(list.current?.offsetTop ?? 0) + 40}
          bufferSize={400}
        >
          {(task) => <TaskRow key={task.id} task={task} />}
        </Virtualizer>
      )}
      {state.edge !== null && <p className="py-3 text-center text-sm text-quiet">{t("loading")}</p>}
      {state.edgeError !== null && (
        <p className="py-3 text-center">
          <Button onClick={() => feed.loadNewer()}>{t("tryAgain")}</Button>
        </p>
      )}
    </section>
  );
}

function TaskRow({ task }: { task: CallTask }) {
  const { t, language } = useTranslation();
  const variables = task.variables.map(({ name, value }) => `${name}: ${value}`).join(" · ");
  const result = task.outcome && t(`callOutcome.${task.outcome}`);
  return (
    <div
      data-task={task.row}
      data-task-state={task.state}
      className="grid grid-cols-[3rem_minmax(0,1fr)_auto] items-baseline gap-x-3 border-b border-line py-2 sm:grid-cols-[3.5rem_minmax(0,12rem)_minmax(0,1fr)_auto_auto]"
    >
      <span
        className="text-right text-sm text-quiet tabular-nums"
        title={t("callJob.row", { row: task.row })}
      >
        {task.row.toLocaleString(language)}
      </span>
      <span className="truncate font-medium tabular-nums">{task.phoneNumber}</span>
      <span className="truncate text-sm text-quiet max-sm:order-last max-sm:col-span-2 max-sm:col-start-2">
        {task.error ?? variables}
      </span>
      <span className="text-right text-sm text-quiet tabular-nums max-sm:hidden">
        {detailOf(task, result, t)}
      </span>
      <span className="flex items-baseline gap-2">
        {task.recording && <RecordingButton phoneNumber={task.phoneNumber} url={task.recording.url} />}
        <Badge tone={TASK_TONES[task.state]}>{t(`callTask.${task.state}`)}</Badge>
      </span>
    </div>
  );
}

function RecordingButton({ phoneNumber, url }: { phoneNumber: string; url: string }) {
  const { t } = useTranslation();
  const name = decodeURIComponent(url.slice(url.lastIndexOf("/") + 1));
  return (
    <button
      type="button"
      className="min-h-6 text-sm text-accent underline"
      aria-label={t("callJob.downloadRecording", { number: phoneNumber })}
      onClick={() => downloadFile({ url, name }).catch(() => notify(t("file.downloadFailed")))}
    >
      {t("callJob.recording")}
    </button>
  );
}

/** Returns the last call's result, its duration, and the number of attempts when there were several. */
function detailOf({ attempts, startedAt, endedAt }: CallTask, result: string | null, t: Translate): string {
  const duration_s =
    startedAt && endedAt ? Math.round((Date.parse(endedAt) - Date.parse(startedAt)) / 1000) : null;
  const duration =
    duration_s === null ? null : `${Math.floor(duration_s / 60)}:${String(duration_s % 60).padStart(2, "0")}`;
  const attemptCount = attempts > 1 ? t("callJob.attempts", { count: attempts }) : null;
  return [result, duration, attemptCount].filter(Boolean).join(" · ");
}
