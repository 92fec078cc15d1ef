/**
 * The signed-in user's token. Each tab has its own token, so that two users can be signed in at the same time. A new tab
 * starts with the newest token.
 */
import { takeTokenFromFragment } from "../token";
import { createValue } from "../ui/value";

const KEY = "noroshi.token";
/** Carries the token of a user who signed out in another tab. */
const signedOut = new BroadcastChannel("noroshi.signed-out");

export type SignOutReason = "nobody" | "refused";

export const token = createValue<string | null>(
  takeTokenFromFragment() ?? sessionStorage.getItem(KEY) ?? localStorage.getItem(KEY),
);
export const signOutReason = createValue<SignOutReason>("nobody");

export function signIn(newToken: string): void {
  sessionStorage.setItem(KEY, newToken);
  localStorage.setItem(KEY, newToken);
  signOutReason.set("nobody");
  token.set(newToken);
}

/** Signs the user out in every tab. */
export function signOut(because: SignOutReason = "nobody"): void {
  if (token.get() !== null) signedOut.postMessage(token.get());
  forget(because);
}

function forget(because: SignOutReason): void {
  const own = token.get();
  sessionStorage.removeItem(KEY);
  if (localStorage.getItem(KEY) === own) localStorage.removeItem(KEY);
  signOutReason.set(because);
  token.set(null);
}

const initial = token.get();
if (initial !== null) signIn(initial);

signedOut.onmessage = ({ data }) => {
  if (data === token.get()) forget("nobody");
};

addEventListener("hashchange", () => {
  const fresh = takeTokenFromFragment();
  if (fresh !== null) signIn(fresh);
});
