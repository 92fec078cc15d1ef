/** Why the server refused what was entered, beside the form that it was entered in. */
import { useState } from "react";
import { wordOf } from "../api/failure";
import type { Word } from "../i18n/words";
import { useWords } from "../ui/preferences";
import { type Readings, readingsOf, refusalOf } from "./readings";

/** Labels of the input fields that the server names in `extensions.field`. */
const FIELDS: Record<string, Word> = {
  baseUrl: "publishing.baseUrl",
  credentials: "publishing.credentials",
  dueAt: "publishing.when",
  maxLatenessS: "publishing.lateness",
  media: "publishing.media",
  name: "publishing.accountName",
  network: "publishing.network",
  text: "publishing.text",
  timeZone: "publishing.zone",
  toAccountIds: "publishing.targets",
  toHomeFeed: "publishing.targets",
  toTopicIds: "publishing.targets",
};

export interface Attempt {
  busy: boolean;
  error: unknown;
  readings: Readings | null;
  /** Forgets why the last try failed. */
  forget: () => void;
  /** Tries once; whether it went through. */
  run(deed: () => Promise<void>): Promise<boolean>;
}

export function useAttempt(): Attempt {
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>(null);
  const readings = error === null ? null : readingsOf(refusalOf(error));
  async function run(deed: () => Promise<void>): Promise<boolean> {
    setBusy(true);
    try {
      await deed();
      setError(null);
      return true;
    } catch (failure) {
      setError(failure);
      return false;
    } finally {
      setBusy(false);
    }
  }
  return { busy, error, readings, run, forget: () => setError(null) };
}

/** Nothing for an unclear time, which has a choice of its own. */
export function Refused({ error, readings }: Attempt) {
  const { t } = useWords();
  if (error === null || readings) return null;
  const refusal = refusalOf(error);
  return (
    <div role="alert" className="rounded-card bg-bad-ground px-3 py-2 text-sm text-bad">
      <p>{t(wordOf(error))}</p>
      {refusal && (
        <p lang="en">
          {FIELDS[refusal.field] ? `${t(FIELDS[refusal.field] as Word)}: ` : ""}
          {refusal.expected}
        </p>
      )}
    </div>
  );
}
