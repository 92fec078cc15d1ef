/** Maps a failed request to a text for the user, and tells whether a retry may help. */
import type { TextKey } from "../i18n/texts";

interface FailedRequest {
  networkError?: unknown;
  graphQLErrors?: readonly { message?: string; extensions?: Record<string, unknown> }[];
}

/** Returns the `extensions.code` of the first error; OFFLINE when the server was not reached. */
export function errorCode(error: unknown): string {
  const { networkError, graphQLErrors } = error as FailedRequest;
  if (networkError) return "OFFLINE";
  const code = graphQLErrors?.[0]?.extensions?.code;
  return typeof code === "string" ? code : "UNKNOWN";
}

const TEXT_KEYS: Record<string, TextKey> = {
  OFFLINE: "failure.offline",
  FORBIDDEN: "failure.forbidden",
  NOT_FOUND: "failure.notFound",
  QUOTA_EXCEEDED: "failure.quota",
  RATE_LIMITED: "failure.tooMany",
  UNAVAILABLE: "failure.busy",
  BAD_USER_INPUT: "failure.input",
  CONFLICT: "failure.changed",
  UNAUTHENTICATED: "failure.signIn",
};

export function failureTextKey(error: unknown): TextKey {
  const { stampPackId } = (error as FailedRequest).graphQLErrors?.[0]?.extensions ?? {};
  if (stampPackId !== undefined) return "failure.stampPack";
  return TEXT_KEYS[errorCode(error)] ?? "failure.unknown";
}

/** Returns whether the same request may succeed later, unchanged. */
export function isRetryable(error: unknown): boolean {
  return ["OFFLINE", "RATE_LIMITED", "UNAVAILABLE"].includes(errorCode(error));
}

/** Returns how long the server asks the client to wait, in milliseconds; null if it does not. */
export function retryAfterMs(error: unknown): number | null {
  const wait = (error as FailedRequest).graphQLErrors?.[0]?.extensions?.retryAfterMs;
  return typeof wait === "number" ? wait : null;
}

/**
 * Returns the instant at which the mute or ban ends that caused the failure. Null for a ban without an end, and for
 * other failures.
 */
export function restrictedUntil(error: unknown): string | null {
  const until = (error as FailedRequest).graphQLErrors?.[0]?.extensions?.until;
  return errorCode(error) === "FORBIDDEN" && typeof until === "string" ? until : null;
}

/** Returns the server's error message for BAD_USER_INPUT and CONFLICT; null for every other failure. */
export function rejectionText(error: unknown): string | null {
  const [firstError] = (error as FailedRequest).graphQLErrors ?? [];
  return errorCode(error) === "BAD_USER_INPUT" || errorCode(error) === "CONFLICT"
    ? (firstError?.message ?? null)
    : null;
}

/** Returns the part of a search that the server did not understand; null for every other failure. */
export function wrongTerm(error: unknown): string | null {
  const term = (error as FailedRequest).graphQLErrors?.[0]?.extensions?.term;
  return errorCode(error) === "BAD_USER_INPUT" && typeof term === "string" ? term : null;
}
