/** Colours of the states of jobs and numbers, and the parts of the progress bar. */
import type { Language } from "../i18n/texts";
import type { BadgeTone } from "../ui/badge";
import type { Translate } from "../ui/preferences";
import type { CallJob, CallJobProgress, CallJobState, CallTaskState } from "./operations";

export const JOB_TONES: Record<CallJobState, BadgeTone> = {
  SCHEDULED: "quiet",
  RUNNING: "live",
  WAITING_FOR_WINDOW: "wait",
  PAUSED: "wait",
  COMPLETED: "good",
  CANCELLED: "quiet",
  REJECTED: "bad",
};

export const TASK_TONES: Record<CallTaskState, BadgeTone> = {
  QUEUED: "quiet",
  DIALLING: "live",
  IN_CALL: "live",
  COMPLETED: "good",
  FAILED: "bad",
  UNKNOWN: "wait",
  SKIPPED: "quiet",
  CANCELLED: "quiet",
};

/** The parts of the progress bar in order, each with its task states. */
export const PROGRESS_PARTS = [
  { part: "completed", states: ["COMPLETED"], colour: "bg-good" },
  { part: "failed", states: ["FAILED"], colour: "bg-bad" },
  { part: "unknown", states: ["UNKNOWN"], colour: "bg-wait" },
  { part: "skipped", states: ["SKIPPED"], colour: "bg-quiet" },
  { part: "cancelled", states: ["CANCELLED"], colour: "bg-quiet" },
  { part: "active", states: ["DIALLING", "IN_CALL"], colour: "bg-fire" },
  { part: "queued", states: ["QUEUED"], colour: "bg-line" },
] as const satisfies readonly {
  part: keyof CallJobProgress;
  states: readonly CallTaskState[];
  colour: string;
}[];

export type ProgressPart = (typeof PROGRESS_PARTS)[number]["part"];

export function finishedCount({ total, queued, active }: CallJobProgress): number {
  return total - queued - active;
}

const UNFINISHED: readonly CallJobState[] = ["SCHEDULED", "RUNNING", "WAITING_FOR_WINDOW", "PAUSED"];
export const isUnfinished = ({ state }: CallJob) => UNFINISHED.includes(state);

/** Returns the text of a job's calling window: its hours, time zone and days. */
export function windowText(t: Translate, language: Language, window: NonNullable<CallJob["window"]>): string {
  const { start, end, timeZone: zone, weekdays } = window;
  const separator = language === "ja" ? "・" : ", ";
  const days =
    weekdays.length === 7 ? t("callDay.all") : weekdays.map((day) => t(`callDay.${day}`)).join(separator);
  return t("callJob.window", { start, end, zone, days });
}
