/**
 * The signed-in user's token. Each tab has its own token, so that two users can be signed in at the same time. A new
 * tab starts with the newest token.
 */
import { takeTokenFromFragment } from "../token";
import { createValue } from "../ui/value";
import { identityOf } from "./identity";
import { isSignedOut, markSignedOut, removeSignOutMark, watchSignOut } from "./sign-out-marks";
import { createUserStorage, type UserStorage } from "./user-storage";

const TOKEN_KEY = "noroshi.token";

export type SignOutReason = "nobody" | "refused";

export const token = createValue<string | null>(storedToken());
/** The token of a sign-in link that was opened while somebody is signed in. The user decides whether to use it. */
export const offeredToken = createValue<string | null>(null);
export const signOutReason = createValue<SignOutReason>("nobody");

/** An empty text in the session storage means that the user signed out in this tab, which a reload does not change. */
function storedToken(): string | null {
  const stored = sessionStorage.getItem(TOKEN_KEY) ?? localStorage.getItem(TOKEN_KEY);
  return stored && !isSignedOut(stored) ? stored : null;
}

export function signIn(newToken: string): void {
  sessionStorage.setItem(TOKEN_KEY, newToken);
  localStorage.setItem(TOKEN_KEY, newToken);
  removeSignOutMark(newToken);
  signOutReason.set("nobody");
  token.set(newToken);
}

/** Signs the user out in every tab, and removes what they typed from this browser. */
export function signOut(): void {
  const ownToken = token.get();
  if (ownToken === null) return;
  markSignedOut(ownToken);
  endSession("nobody");
  userStorageOf(ownToken).clear();
}

/** Ends the session of this tab. What the user typed stays for the next sign-in. */
export function endSession(reason: SignOutReason): void {
  const ownToken = token.get();
  if (reason === "nobody") sessionStorage.setItem(TOKEN_KEY, "");
  else sessionStorage.removeItem(TOKEN_KEY);
  if (ownToken !== null && isOfSameUser(localStorage.getItem(TOKEN_KEY), ownToken, reason))
    localStorage.removeItem(TOKEN_KEY);
  signOutReason.set(reason);
  token.set(null);
}

/** A rejected token says nothing about another token of the same user. */
function isOfSameUser(stored: string | null, ownToken: string, reason: SignOutReason): boolean {
  if (reason === "refused" || stored === null) return stored === ownToken;
  return identityOf(stored) === identityOf(ownToken);
}

export function userStorageOf(ownToken: string): UserStorage {
  return createUserStorage(localStorage, identityOf(ownToken) ?? "unknown");
}

watchSignOut(() => {
  const ownToken = token.get();
  if (ownToken === null || !isSignedOut(ownToken)) return;
  endSession("nobody");
  userStorageOf(ownToken).clear();
});

/** Signs in with the link in the address bar, or offers it if somebody is signed in. */
function openLink(): void {
  const linkToken = takeTokenFromFragment();
  if (linkToken === null) return;
  if (token.get() === null || token.get() === linkToken) signIn(linkToken);
  else offeredToken.set(linkToken);
}

const initialToken = token.get();
if (initialToken !== null) signIn(initialToken);
openLink();
addEventListener("hashchange", openLink);
