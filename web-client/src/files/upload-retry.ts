/** Decisions after a request that sent bytes of an upload. */

const MAX_FAILURES = 8;
/** After these, the upload waits for the connection. */
const MAX_LOST_CONNECTIONS = 3;
const MAX_DELAY_MS = 15_000;

/** Returns the offset that a response names; null if it names none. */
export function nextOffset(status: number, header: string | null): number | null {
  return (status === 204 || status === 409) && header !== null && /^\d{1,15}$/.test(header)
    ? Number(header)
    : null;
}

/** Returns how long to wait before the next request; null if another request would fail too. */
export function retryDelayMs(status: number, failures: number): number | null {
  const mayHelp = status === 0 || status === 409 || status === 429 || status >= 500;
  const maxFailures = status === 0 ? MAX_LOST_CONNECTIONS : MAX_FAILURES;
  return mayHelp && failures <= maxFailures ? Math.min(500 * 2 ** failures, MAX_DELAY_MS) : null;
}
