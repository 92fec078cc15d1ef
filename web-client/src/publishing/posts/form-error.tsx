/** The error of a form, and the state of its submission. */
import { useState } from "react";
import { failureTextKey } from "../../api/failure";
import type { TextKey } from "../../i18n/texts";
import { type Translate, useTranslation } from "../../ui/preferences";
import { type InputRejection, readingsOf, rejectionOf, type TimeReadings } from "./rejections";

/** Labels of the input fields that the server names in `extensions.field`. */
const FIELDS: Record<string, TextKey> = {
  attachments: "publishing.files",
  baseUrl: "publishing.baseUrl",
  credentials: "publishing.credentials",
  dueAt: "publishing.when",
  dueAtLocal: "publishing.when",
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

/** Returns the field's label, if it has one, followed by what the server expected, in English. */
export function rejectionMessage({ field, expected }: InputRejection, t: Translate): string {
  const index = /^attachments\[(\d+)\]/.exec(field)?.[1];
  if (index !== undefined)
    return `${t("publishing.fileNumbered", { number: Number(index) + 1 })}: ${expected}`;
  const label = FIELDS[field];
  return label ? `${t(label)}: ${expected}` : expected;
}

export interface FormSubmission {
  isBusy: boolean;
  error: unknown;
  /** Both readings, if the last error is about an ambiguous local time. */
  readings: TimeReadings | null;
  clearError: () => void;
  /** Runs the action, and returns whether it succeeded. An exception becomes `error`. */
  run(action: () => Promise<void>): Promise<boolean>;
}

export function useSubmission(): FormSubmission {
  const [isBusy, setIsBusy] = useState(false);
  const [error, setError] = useState<unknown>(null);
  const readings = error === null ? null : readingsOf(rejectionOf(error));
  async function run(action: () => Promise<void>): Promise<boolean> {
    setIsBusy(true);
    try {
      await action();
      setError(null);
      return true;
    } catch (failure) {
      setError(failure);
      return false;
    } finally {
      setIsBusy(false);
    }
  }
  return { isBusy, error, readings, run, clearError: () => setError(null) };
}

/** Shows the last error. Shows nothing for an ambiguous time, for which the form offers a choice. */
export function FormError({ error, readings }: FormSubmission) {
  const { t } = useTranslation();
  if (error === null || readings) return null;
  const rejection = rejectionOf(error);
  return (
    <div role="alert" className="rounded-card bg-bad-ground px-3 py-2 text-sm text-bad">
      <p>{t(failureTextKey(error))}</p>
      {rejection && <p lang="en">{rejectionMessage(rejection, t)}</p>}
    </div>
  );
}
