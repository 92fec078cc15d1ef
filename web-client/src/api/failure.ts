/** Maps a failed request to a message for the user, and says whether a retry may help. */
import type { Word } from "../i18n/words";

interface Failed {
  networkError?: unknown;
  graphQLErrors?: readonly { message?: string; extensions?: Record<string, unknown> }[];
}

/** The `extensions.code` of the first error; OFFLINE when the server was not reached. */
export function codeOf(error: unknown): string {
  const { networkError, graphQLErrors } = error as Failed;
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

export function wordOf(error: unknown): Word {
  return WORDS[codeOf(error)] ?? "failure.unknown";
}

/** Returns whether the same request may succeed later, unchanged. */
export function mayPassLater(error: unknown): boolean {
  return ["OFFLINE", "RATE_LIMITED", "UNAVAILABLE"].includes(codeOf(error));
}

/** Returns the server's own sentence about rejected input; null for every other failure. */
export function refusalOf(error: unknown): string | null {
  const [first] = (error as Failed).graphQLErrors ?? [];
  return codeOf(error) === "BAD_USER_INPUT" || codeOf(error) === "CONFLICT" ? (first?.message ?? null) : null;
}
