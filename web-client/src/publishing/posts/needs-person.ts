/** Which posts may need a person. */
import type { ScheduledPost } from "../operations";

/** Whether a publication was not published, or may not have been. A PARTIAL post may only have cancelled ones. */
export function needsPerson({ publications }: Pick<ScheduledPost, "publications">): boolean {
  return publications.some(
    ({ state }) => state === "NEEDS_ATTENTION" || state === "UNKNOWN" || state === "FAILED",
  );
}
