/**
 * The header editor's content when the page opens. The token of a sign-in link is kept while the browser's tab is open,
 * so a reload stays signed in. GraphiQL keeps headers longer only if the user chose that in its settings.
 */
import { takeTokenFromFragment } from "../token";

const LINK_TOKEN = "noroshi:linkToken";
const KEPT_HEADERS = "graphiql:headers";
const KEPT_TABS = "graphiql:tabState";
const KEEP = "graphiql:shouldPersistHeaders";

/** Whether the user chose to keep headers in this browser. GraphiQL's own default would be to keep them. */
export const headersAreKept = (): boolean => localStorage.getItem(KEEP) === "true";

/** The headers of the sign-in link as JSON, or undefined without one. */
export function headersFromLink(): string | undefined {
  const arrived = takeTokenFromFragment();
  if (arrived !== null) {
    sessionStorage.setItem(LINK_TOKEN, arrived);
    forgetKeptHeaders();
  }
  const token = sessionStorage.getItem(LINK_TOKEN);
  return token === null ? undefined : JSON.stringify({ Authorization: `Bearer ${token}` }, null, 2);
}

/** Headers kept by an earlier visit would override the link. */
function forgetKeptHeaders(): void {
  localStorage.removeItem(KEPT_HEADERS);
  const tabs = localStorage.getItem(KEPT_TABS);
  if (tabs !== null) localStorage.setItem(KEPT_TABS, withoutHeaders(tabs));
}

const withoutHeaders = (tabs: string): string =>
  JSON.stringify(JSON.parse(tabs), (key, value) => (key === "headers" ? null : value));
