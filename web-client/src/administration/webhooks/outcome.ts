/** Waits for the outcome of a delivery that was requested. */

export const OUTCOME_POLL_MS = 1_000;
export const OUTCOME_POLLS_MAX = 30;

interface Outcome {
  id: string;
  outcome: string;
}

/**
 * Loads the newest deliveries until one of them, with this id, no longer waits. Returns that one; null if it still waits
 * at the end, or after `signal` was aborted. A failed load is repeated like one without an outcome.
 */
export async function waitForOutcome<Delivery extends Outcome>(
  id: string,
  load: () => Promise<readonly Delivery[]>,
  signal: AbortSignal,
): Promise<Delivery | null> {
  for (let poll = 0; poll < OUTCOME_POLLS_MAX && !signal.aborted; poll++) {
    await new Promise((resolve) => setTimeout(resolve, OUTCOME_POLL_MS));
    const found = (await load().catch(() => [])).find((each) => each.id === id);
    if (found && found.outcome !== "WAITING") return signal.aborted ? null : found;
  }
  return null;
}
