/**
 * The header editor's content when the page opens. The token of a sign-in link is kept while the browser's tab is open,
 * so a reload stays signed in. GraphiQL keeps headers longer only if the user chose that in its settings.
 */
import { takeTokenFromFragment } from "../token";

const LINK_TOKEN_KEY = "noroshi:linkToken";
const HEADERS_KEY = "graphiql:headers";
const TABS_KEY = "graphiql:tabState";
const KEEP_HEADERS_KEY = "graphiql:shouldPersistHeaders";

/** Whether the user chose to keep headers in this browser. GraphiQL's own default would be to keep them. */
export const headersAreKept = (): boolean => localStorage.getItem(KEEP_HEADERS_KEY) === "true";

/** The headers of the sign-in link as JSON, or undefined without one. */
export function headersFromLink(): string | undefined {
  const linkToken = takeTokenFromFragment();
  if (linkToken !== null) {
    sessionStorage.setItem(LINK_TOKEN_KEY, linkToken);
    forgetKeptHeaders();
  }
  const token = sessionStorage.getItem(LINK_TOKEN_KEY);
  return token === null ? undefined : JSON.stringify({ Authorization: `Bearer ${token}` }, null, 2);
}

/** Headers kept by an earlier visit would override the link. */
function forgetKeptHeaders(): void {
  localStorage.removeItem(HEADERS_KEY);
  const tabs = localStorage.getItem(TABS_KEY);
  if (tabs !== null) localStorage.setItem(TABS_KEY, withoutHeaders(tabs));
}

const withoutHeaders = (tabs: string): string =>
  JSON.stringify(JSON.parse(tabs), (key, value) => (key === "headers" ? null : value));
