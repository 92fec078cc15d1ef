/**
 * Parses the server's rejection of input: the field, the expectation, and both readings of an ambiguous local time.
 */
interface FailedRequest {
  graphQLErrors?: readonly { extensions?: Record<string, unknown> }[];
}

export interface InputRejection {
  field: string;
  expected: string;
  /** Why a social network refuses credentials, in its own words. */
  reason?: string;
}

/** Returns the rejection; null if the error is not about input. */
export function rejectionOf(error: unknown): InputRejection | null {
  const { code, field, expected, reason } = (error as FailedRequest).graphQLErrors?.[0]?.extensions ?? {};
  if (code !== "BAD_USER_INPUT") return null;
  const rejection: InputRejection = { field: String(field ?? ""), expected: String(expected ?? "") };
  return typeof reason === "string" ? { ...rejection, reason } : rejection;
}

const READINGS_PATTERN = /^(\S+Z) or (\S+Z), because .* (occurs twice|does not exist) in /;

/** The two instants (readings) that a local time may mean if clocks skip or repeat it. */
export interface TimeReadings {
  /** Whether the local time occurs twice or never, because clocks go back or forward. */
  kind: "twice" | "never";
  /** The possible instants (RFC 3339), earlier first. */
  instants: [string, string];
}

/** Returns both instants that an ambiguous local time may mean; null if the rejection is about something else. */
export function readingsOf(rejection: InputRejection | null): TimeReadings | null {
  const [, first, second, reason] = READINGS_PATTERN.exec(rejection?.expected ?? "") ?? [];
  if (first === undefined || second === undefined) return null;
  return { kind: reason === "occurs twice" ? "twice" : "never", instants: [first, second] };
}
