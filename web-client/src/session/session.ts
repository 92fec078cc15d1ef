/**
 * The signed-in user's credential: a token, or the browser's session. Each tab has its own token, so that two users can
 * be signed in at the same time. A new tab starts with the newest token. All tabs share the browser's session.
 */
import { forgetAllBytes } from "../files/kept-bytes";
import { takeTokenFromFragment } from "../token";
import { createValue } from "../ui/value";
import { endBrowserSession, fetchSession } from "./browser-session";
import { identityOf, isSession } from "./identity";
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

/**
 * Signs the user out in every tab, and removes what they typed from this browser. Opens the identity provider's page if
 * the user signed in there. Throws: Error if the server does not end the session.
 */
export async function signOut(): Promise<void> {
  const ownToken = token.get();
  if (ownToken === null) return;
  const providerUrl = isSession(ownToken) ? await endBrowserSession() : null;
  markSignedOut(ownToken);
  endSession("nobody");
  forgetTyped(ownToken);
  if (providerUrl !== null) location.assign(providerUrl);
}

/** Signs in with the browser's session. Returns whether there is a session. Throws: Error if the server fails. */
export async function resumeSession(): Promise<boolean> {
  const session = await fetchSession();
  if (session !== null) signIn(session);
  return session !== null;
}

/** Ends the session of this tab, unless the browser still has a session that the server accepts. */
export async function handleRejection(): Promise<void> {
  const ownToken = token.get();
  if (ownToken === null) return;
  if (!isSession(ownToken)) {
    endSession("refused");
    return;
  }
  // If the server does not answer, the session may be valid. The connection reports later whether it has ended.
  const hasSession = await resumeSession().catch(() => true);
  if (!hasSession && token.get() === ownToken) endSession("refused");
}

/** Ends the session of this tab. What the user typed stays for the next sign-in. */
export function endSession(reason: SignOutReason): void {
  const ownToken = token.get();
  if (reason === "nobody") sessionStorage.setItem(TOKEN_KEY, "");
  else sessionStorage.removeItem(TOKEN_KEY);
  if (ownToken !== null && isStoredTokenEnded(localStorage.getItem(TOKEN_KEY), ownToken, reason))
    localStorage.removeItem(TOKEN_KEY);
  signOutReason.set(reason);
  token.set(null);
}

/**
 * Returns whether the end of this tab's token also removes the stored token. A sign-out removes any token of the user.
 * A rejection removes only the rejected token, because it says nothing about another token of the user.
 */
function isStoredTokenEnded(stored: string | null, ownToken: string, reason: SignOutReason): boolean {
  if (reason === "refused" || stored === null) return stored === ownToken;
  return identityOf(stored) === identityOf(ownToken);
}

/** Removes the texts and files that the user has not sent from this browser. */
function forgetTyped(ownToken: string): void {
  const storage = userStorageOf(ownToken);
  storage.clear();
  forgetAllBytes(storage.owner);
}

export function userStorageOf(ownToken: string): UserStorage {
  return createUserStorage(localStorage, identityOf(ownToken) ?? "unknown");
}

watchSignOut(() => {
  const ownToken = token.get();
  if (ownToken === null || !isSignedOut(ownToken)) return;
  endSession("nobody");
  forgetTyped(ownToken);
});

// Another tab has stored a session: the browser's session is now that of another user. This tab changes to that user,
// because its requests would be sent as the new user while it shows the old one.
addEventListener("storage", ({ key, newValue }) => {
  const ownToken = token.get();
  if (key !== TOKEN_KEY || !newValue || ownToken === null || newValue === ownToken) return;
  if (isSession(ownToken) && isSession(newValue)) signIn(newValue);
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
