/** What a viewer changed in their profile, and why the server refused a handle. */
import { errorCode, retryAfterMs } from "../api/failure";
import type { Language, TextKey } from "../i18n/texts";
import { dateAndTime } from "../i18n/times";

export interface ProfileTexts {
  name: string;
  handle: string;
  bio: string;
}

export interface Refusal {
  textKey: TextKey;
  values?: Record<string, string>;
}

/** Pauses of the server's other limits are shorter. */
const SHORTEST_PAUSE_MS = 5 * 60_000;

/** Returns the input of `updateProfile`, with the texts that differ from the stored ones. */
export function changedFields(stored: ProfileTexts, typed: ProfileTexts): { name?: string; bio?: string } {
  const [name, bio] = [typed.name.trim(), typed.bio.trim()];
  return { ...(name !== stored.name && { name }), ...(bio !== stored.bio && { bio }) };
}

/** Returns why a handle was refused; null for an error that is not about the handle. */
export function handleRefusal(error: unknown, language: Language, now: Date): Refusal | null {
  const code = errorCode(error);
  if (code === "CONFLICT") return { textKey: "profile.handleTaken" };
  if (code === "BAD_USER_INPUT") return { textKey: "local.badHandle" };
  const pauseMs = retryAfterMs(error);
  if (code !== "RATE_LIMITED" || pauseMs === null || pauseMs < SHORTEST_PAUSE_MS) return null;
  const date = dateAndTime(language, new Date(now.getTime() + pauseMs));
  return { textKey: "profile.handleLater", values: { date } };
}
