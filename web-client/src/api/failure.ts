/** What a failed request means for a person: its place in the dictionary, and whether trying again may help. */
import type { Word } from "../i18n/words";

interface Failed {
  networkError?: unknown;
  graphQLErrors?: readonly { extensions?: Record<string, unknown> }[];
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

/** Whether the same request may pass later, unchanged. */
export function mayPassLater(error: unknown): boolean {
  return ["OFFLINE", "RATE_LIMITED", "UNAVAILABLE"].includes(codeOf(error));
}
