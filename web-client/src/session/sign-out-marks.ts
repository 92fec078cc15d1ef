/**
 * Marks of users who signed out, in the browser's local storage. The browser's `storage` event reports a mark to other
 * tabs at once. A tab that was suspended meanwhile finds the mark when it resumes or is loaded again.
 */
import { identityOf } from "./identity";

const MARK_PREFIX = "noroshi.signed-out.";

/** Reports to all tabs that the token's user has signed out. */
export function markSignedOut(token: string): void {
  const identity = identityOf(token);
  if (identity !== null) localStorage.setItem(MARK_PREFIX + identity, new Date().toISOString());
}

/** Removes the mark of a user who signs in again. */
export function removeSignOutMark(token: string): void {
  localStorage.removeItem(MARK_PREFIX + identityOf(token));
}

export function isSignedOut(token: string): boolean {
  return localStorage.getItem(MARK_PREFIX + identityOf(token)) !== null;
}

/** Calls the listener when a user may have signed out in another tab. */
export function watchSignOut(listener: () => void): void {
  addEventListener("storage", ({ key }) => key?.startsWith(MARK_PREFIX) && listener());
  addEventListener("pageshow", ({ persisted }) => persisted && listener());
}
