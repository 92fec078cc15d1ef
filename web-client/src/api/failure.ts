/** Maps a failed request to a message for the user, and says whether a retry may help. */
import type { Word } from "../i18n/words";

interface FailedRequest {
  networkError?: unknown;
  graphQLErrors?: readonly { message?: string; extensions?: Record<string, unknown> }[];
}

/** The `extensions.code` of the first error; OFFLINE when the server was not reached. */
export function errorCode(error: unknown): string {
  const { networkError, graphQLErrors } = error as FailedRequest;
  if (networkError) return "OFFLINE";
  const code = graphQLErrors?.[0]?.extensions?.code;
  return typeof code === "string" ? code : "UNKNOWN";
}

const WORDS: Record<string, Word> = {
  OFFLINE: "failure.offline",
  FORBIDDEN: "failure.forbidden",
  NOT_FOUND: "failure.notFound",
  RATE_LIMITED: "failure.busy",
  UNAVAILABLE: "failure.busy",
  BAD_USER_INPUT: "failure.input",
  CONFLICT: "failure.changed",
  UNAUTHENTICATED: "failure.signIn",
};

export function failureWord(error: unknown): Word {
  return WORDS[errorCode(error)] ?? "failure.unknown";
}

/** Returns whether the same request may succeed later, unchanged. */
export function isRetryable(error: unknown): boolean {
  return ["OFFLINE", "RATE_LIMITED", "UNAVAILABLE"].includes(errorCode(error));
}

/** Returns the server's own sentence about rejected input; null for every other failure. */
export function rejectionText(error: unknown): string | null {
  const [first] = (error as FailedRequest).graphQLErrors ?? [];
  return errorCode(error) === "BAD_USER_INPUT" || errorCode(error) === "CONFLICT"
    ? (first?.message ?? null)
    : null;
}
