/** Toasts: short messages at the bottom of the window about an action or its failure. */
import { failureTextKey, rejectionText, restrictedUntil } from "../api/failure";
import { translate } from "../i18n/texts";
import { dateAndTime } from "../i18n/times";
import { language } from "./preferences";
import { createValue, useValue } from "./value";

const TOAST_DURATION_MS = 5_000;

interface Toast {
  id: number;
  text: string;
}

const toasts = createValue<readonly Toast[]>([]);
let lastId = 0;

export function notify(text: string): void {
  const toast = { id: ++lastId, text };
  toasts.set([...toasts.get(), toast]);
  setTimeout(() => toasts.set(toasts.get().filter(({ id }) => id !== toast.id)), TOAST_DURATION_MS);
}

/** Shows why a request failed. */
export function notifyFailure(error: unknown): void {
  const until = restrictedUntil(error);
  const key = until === null ? failureTextKey(error) : "failure.forbiddenUntil";
  notify(
    translate(language.get(), key, { until: until ? dateAndTime(language.get(), new Date(until)) : "" }),
  );
}

/** Shows the server's message if it rejected the request, and otherwise why the request failed. */
export function notifyError(error: unknown): void {
  const rejection = rejectionText(error);
  if (rejection) notify(rejection);
  else notifyFailure(error);
}

export function Toasts() {
  return (
    <div
      role="status"
      className="pointer-events-none fixed inset-x-4 bottom-20 z-20 flex flex-col items-center gap-2"
    >
      {useValue(toasts).map(({ id, text }) => (
        <p key={id} className="rise rounded-full bg-ink px-4 py-2 text-sm text-paper shadow-raised">
          {text}
        </p>
      ))}
    </div>
  );
}
