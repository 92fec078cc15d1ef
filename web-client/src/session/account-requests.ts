/** Requests about local accounts: signing in with a password, invitations, verification, and reset. */
import type { TextKey } from "../i18n/texts";

/** A request that the server rejected, or that did not reach it (OFFLINE). */
export class AccountFailure extends Error {
  constructor(
    readonly code: string,
    readonly field: string | null = null,
  ) {
    super(code);
  }
}

/** Sends a request, and returns the answer. Throws: AccountFailure. */
export async function sendAccountRequest(path: string, body: object): Promise<Record<string, unknown>> {
  let response: Response;
  try {
    response = await fetch(path, {
      method: "POST",
      headers: { "content-type": "application/json", "noroshi-client": "web" },
      body: JSON.stringify(body),
    });
  } catch {
    throw new AccountFailure("OFFLINE");
  }
  const answer = await response.json().catch(() => ({}));
  if (!response.ok) throw new AccountFailure(String(answer.code ?? "UNKNOWN"), answer.field ?? null);
  return answer;
}

const TEXT_KEYS: Record<string, TextKey> = {
  OFFLINE: "failure.offline",
  UNAUTHENTICATED: "local.wrongPassword",
  NOT_FOUND: "local.linkInvalid",
  FORBIDDEN: "failure.forbidden",
  CONFLICT: "local.conflict",
  RATE_LIMITED: "local.tooMany",
  UNAVAILABLE: "failure.busy",
};

const FIELD_TEXT_KEYS: Record<string, TextKey> = {
  address: "local.badAddress",
  name: "local.badName",
  password: "local.weakPassword",
};

/** Returns the text that tells the user why a request failed. */
export function accountFailureTextKey(error: unknown): TextKey {
  const { code, field } = error as AccountFailure;
  if (code === "BAD_USER_INPUT") return FIELD_TEXT_KEYS[field ?? ""] ?? "failure.input";
  return TEXT_KEYS[code] ?? "failure.unknown";
}
