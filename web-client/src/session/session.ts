/**
 * The signed-in user's token. Each tab has its own token, so that two users can be signed in at the same time. A new
 * tab starts with the newest token.
 */
import { takeTokenFromFragment } from "../token";
import { createValue } from "../ui/value";

const TOKEN_KEY = "noroshi.token";
/** Tells other tabs the token with which the user signed out. */
const signOutChannel = new BroadcastChannel("noroshi.signed-out");

export type SignOutReason = "nobody" | "refused";

export const token = createValue<string | null>(
  takeTokenFromFragment() ?? sessionStorage.getItem(TOKEN_KEY) ?? localStorage.getItem(TOKEN_KEY),
);
export const signOutReason = createValue<SignOutReason>("nobody");

export function signIn(newToken: string): void {
  sessionStorage.setItem(TOKEN_KEY, newToken);
  localStorage.setItem(TOKEN_KEY, newToken);
  signOutReason.set("nobody");
  token.set(newToken);
}

/** Signs the user out in every tab that has the same token. */
export function signOut(reason: SignOutReason = "nobody"): void {
  if (token.get() !== null) signOutChannel.postMessage(token.get());
  discardToken(reason);
}

function discardToken(reason: SignOutReason): void {
  const ownToken = token.get();
  sessionStorage.removeItem(TOKEN_KEY);
  if (localStorage.getItem(TOKEN_KEY) === ownToken) localStorage.removeItem(TOKEN_KEY);
  signOutReason.set(reason);
  token.set(null);
}

const initialToken = token.get();
if (initialToken !== null) signIn(initialToken);

signOutChannel.onmessage = ({ data }) => {
  if (data === token.get()) discardToken("nobody");
};

addEventListener("hashchange", () => {
  const linkToken = takeTokenFromFragment();
  if (linkToken !== null) signIn(linkToken);
});
