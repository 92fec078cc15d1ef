/**
 * The header editor's content when the page opens. The token of a sign-in link is kept while the browser's tab is open,
 * so a reload stays signed in. Without a link, the user of the web client is signed in. GraphiQL stores headers longer
 * only if the user chose that in its settings.
 */

import { translate } from "../i18n/texts";
import { identityOf, isSession, userTextOf } from "../session/identity";
import { isSignedOut, removeSignOutMark } from "../session/sign-out-marks";
import { takeTokenFromFragment } from "../token";
import { language } from "../ui/preferences";

const LINK_TOKEN_KEY = "noroshi:linkToken";
const SESSION_TOKEN_KEY = "noroshi.token";
const HEADERS_KEY = "graphiql:headers";
const TABS_KEY = "graphiql:tabState";
const KEEP_HEADERS_KEY = "graphiql:shouldPersistHeaders";

/** Returns whether the user chose to keep headers in this browser. By its own default, GraphiQL would keep them. */
export const headersAreKept = (): boolean => localStorage.getItem(KEEP_HEADERS_KEY) === "true";

/** Returns headers with the token of the sign-in link or of the web client as JSON; undefined if there is none. */
export function initialHeaders(): string | undefined {
  const linkToken = takeTokenFromFragment();
  if (linkToken !== null && mayReplaceUser(linkToken)) {
    sessionStorage.setItem(LINK_TOKEN_KEY, linkToken);
    removeSignOutMark(linkToken);
    forgetKeptHeaders();
  }
  removeTokenAfterSignOut();
  const token = sessionStorage.getItem(LINK_TOKEN_KEY) ?? clientToken();
  return token === null ? undefined : JSON.stringify({ Authorization: `Bearer ${token}` }, null, 2);
}

/** Returns the token with which the web client is signed in; null if there is none. A session needs no header. */
function clientToken(): string | null {
  const stored = storedCredential();
  return stored && !isSession(stored) && !isSignedOut(stored) ? stored : null;
}

const storedCredential = (): string | null =>
  sessionStorage.getItem(SESSION_TOKEN_KEY) ?? localStorage.getItem(SESSION_TOKEN_KEY);

/** Returns whether a link may be used. Asks before it replaces another user: any page can open such a link. */
function mayReplaceUser(linkToken: string): boolean {
  const ownToken = sessionStorage.getItem(LINK_TOKEN_KEY) ?? storedCredential();
  if (!ownToken || isSignedOut(ownToken) || identityOf(ownToken) === identityOf(linkToken)) return true;
  const users = { own: userTextOf(ownToken), linked: userTextOf(linkToken) };
  return confirm(translate(language.get(), "signInLink.text", users));
}

/** Removes the link's token if its user has signed out. Returns whether it was removed. */
export function removeTokenAfterSignOut(): boolean {
  const token = sessionStorage.getItem(LINK_TOKEN_KEY);
  if (token === null || !isSignedOut(token)) return false;
  sessionStorage.removeItem(LINK_TOKEN_KEY);
  return true;
}

/** Removes headers that GraphiQL kept from an earlier visit, because they would override those of the link. */
function forgetKeptHeaders(): void {
  localStorage.removeItem(HEADERS_KEY);
  const tabs = localStorage.getItem(TABS_KEY);
  if (tabs !== null) localStorage.setItem(TABS_KEY, withoutHeaders(tabs));
}

const withoutHeaders = (tabs: string): string =>
  JSON.stringify(JSON.parse(tabs), (key, value) => (key === "headers" ? null : value));
