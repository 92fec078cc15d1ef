/** Sends requests about local accounts, changes the password, and says why a request failed. */
import type { TextKey } from "../../i18n/texts";
import { JSON_HEADERS } from "../identity";

/**
 * Why an action on a local account failed. The code comes from the server or from this client, such as
 * PASSKEY_CANCELLED. It is OFFLINE if the server was not reached.
 */
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
      headers: JSON_HEADERS,
      body: JSON.stringify(body),
    });
  } catch {
    throw new AccountFailure("OFFLINE");
  }
  const answer = await response.json().catch(() => ({}));
  if (response.ok) return answer;
  const { code = "UNKNOWN", field = null } = answer.errors?.[0]?.extensions ?? {};
  throw new AccountFailure(code, field);
}

/** Changes the password of the signed-in person. Throws: AccountFailure. */
export async function changePassword(passwords: object): Promise<void> {
  try {
    await sendAccountRequest("/accounts/password", passwords);
  } catch (error) {
    const { code } = error as AccountFailure;
    throw code === "UNAUTHENTICATED" ? new AccountFailure("SESSION_ENDED") : error;
  }
}

const TEXT_KEYS: Record<string, TextKey> = {
  OFFLINE: "failure.offline",
  UNAUTHENTICATED: "local.wrongPassword",
  SESSION_ENDED: "local.sessionEnded",
  NOT_FOUND: "local.linkInvalid",
  FORBIDDEN: "failure.forbidden",
  CONFLICT: "local.conflict",
  RATE_LIMITED: "local.tooMany",
  UNAVAILABLE: "failure.busy",
  PASSKEY_CANCELLED: "passkeys.cancelled",
  PASSKEY_EXISTS: "passkeys.exists",
  PASSKEY_REFUSED: "passkeys.refused",
  SIGN_IN_AGAIN: "passkeys.signInAgain",
};

const FIELD_TEXT_KEYS: Record<string, TextKey> = {
  address: "local.badAddress",
  currentPassword: "local.wrongCurrentPassword",
  handle: "local.badHandle",
  name: "local.badName",
  passkey: "passkeys.cancelled",
  password: "local.weakPassword",
};

/** Returns the text that tells the user why a request failed. */
export function accountFailureTextKey(error: unknown): TextKey {
  const { code, field } = error as AccountFailure;
  if (code === "BAD_USER_INPUT") return FIELD_TEXT_KEYS[field ?? ""] ?? "failure.input";
  return TEXT_KEYS[code] ?? "failure.unknown";
}
