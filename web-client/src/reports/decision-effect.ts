/** The effect of a decision about a report. */
import type { ReportDecision } from "./operations";

/** Returns the decision, or DEACTIVATE: outside of communities, a ban ends the person's access to the organization. */
export function decisionEffect(
  decision: ReportDecision,
  isInCommunity: boolean,
): ReportDecision | "DEACTIVATE" {
  return decision === "BAN" && !isInCommunity ? "DEACTIVATE" : decision;
}
