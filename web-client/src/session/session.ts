/**
 * The signed-in user's token. A tab keeps its own, so that two users can be signed in side by side; a new tab starts
 * with the newest.
 */
import { takeTokenFromFragment } from "../token";
import { createValue } from "../ui/value";

const KEY = "noroshi.token";

export type SignOutReason = "nobody" | "refused";

export const token = createValue<string | null>(
  takeTokenFromFragment() ?? sessionStorage.getItem(KEY) ?? localStorage.getItem(KEY),
);
export const signOutReason = createValue<SignOutReason>("nobody");

export function signIn(fresh: string): void {
  sessionStorage.setItem(KEY, fresh);
  localStorage.setItem(KEY, fresh);
  signOutReason.set("nobody");
  token.set(fresh);
}

export function signOut(because: SignOutReason = "nobody"): void {
  const mine = token.get();
  sessionStorage.removeItem(KEY);
  if (localStorage.getItem(KEY) === mine) localStorage.removeItem(KEY);
  signOutReason.set(because);
  token.set(null);
}

const kept = token.get();
if (kept !== null) signIn(kept);

addEventListener("hashchange", () => {
  const fresh = takeTokenFromFragment();
  if (fresh !== null) signIn(fresh);
});
