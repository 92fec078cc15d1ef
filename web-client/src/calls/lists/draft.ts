/** A draft of a call list, and its conversion to the API input. The server validates it. */
import { LIMITS } from "../../api/limits";
import { excessOf } from "../../ui/fields/text-length";
import type { CallJob, LaunchInput } from "../operations";

export type Weekday = NonNullable<CallJob["window"]>["weekdays"][number];
export const WEEK: readonly Weekday[] = ["MON", "TUE", "WED", "THU", "FRI", "SAT", "SUN"];

export interface CallListDraft {
  name: string;
  scenario: string;
  csv: string;
  /** The country of numbers without a country code, by its two letters; empty if such numbers are errors. */
  defaultRegion: string;
  /** The value of a datetime-local field, in this browser's time zone; empty for immediately. */
  startAt: string;
  hasWindow: boolean;
  start: string;
  end: string;
  timeZone: string;
  weekdays: readonly Weekday[];
  maxAttempts: string;
  retryMinutes: string;
  expectedCallS: string;
}

export function emptyDraft(): CallListDraft {
  return {
    name: "",
    scenario: "",
    csv: "",
    defaultRegion: "",
    startAt: "",
    hasWindow: false,
    start: "09:00",
    end: "18:00",
    timeZone: Intl.DateTimeFormat().resolvedOptions().timeZone,
    weekdays: WEEK.slice(0, 5),
    maxAttempts: "1",
    retryMinutes: "30",
    expectedCallS: "60",
  };
}

export const isComplete = ({ name, scenario, csv }: CallListDraft) =>
  [name, scenario, csv].every((text) => text.trim() !== "") &&
  excessOf(name, LIMITS.callJobName) <= 0 &&
  excessOf(scenario, LIMITS.scenario) <= 0;

export function launchInput(draft: CallListDraft): LaunchInput {
  const { start, end, timeZone, weekdays } = draft;
  return {
    name: draft.name.trim(),
    scenario: draft.scenario.trim(),
    csv: draft.csv,
    defaultRegion: draft.defaultRegion.trim().toUpperCase() || null,
    startAt: draft.startAt ? new Date(draft.startAt).toISOString() : null,
    window: draft.hasWindow ? { start, end, timeZone, weekdays: [...weekdays] } : null,
    maxAttempts: parseInteger(draft.maxAttempts, 1),
    retryDelayS: parseInteger(draft.retryMinutes, 0) * 60,
    expectedCallS: parseInteger(draft.expectedCallS, 1),
  };
}

/** Returns the API input for validating a draft. The name and the scenario do not matter for that and may be empty. */
export function checkInput(draft: CallListDraft): LaunchInput {
  return launchInput({ ...draft, name: "?", scenario: "?" });
}

function parseInteger(text: string, fallback: number): number {
  const value = Math.round(Number(text));
  return text.trim() !== "" && Number.isFinite(value) ? value : fallback;
}

export const EXAMPLE_CSV = `phone_number,name,time
+819012345678,佐藤,10:00
+819012345679,田中,10:30
03-1234-5678,鈴木,11:00
+815012345680,山本,11:30
`;
