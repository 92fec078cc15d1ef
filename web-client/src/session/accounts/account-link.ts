/** The link of an account in the fragment, such as `#invitation=…`. A browser never sends the fragment to a server. */
import { createValue } from "../../ui/value";

const KINDS = ["first-admin", "invitation", "verification", "reset"] as const;

export interface AccountLink {
  kind: (typeof KINDS)[number];
  token: string;
}

/** The link that was opened; null if none was opened, and after it was used or closed. */
export const accountLink = createValue<AccountLink | null>(null);

/** Returns the link in a fragment, or null. */
export function parseAccountLink(fragment: string): AccountLink | null {
  const values = new URLSearchParams(fragment.replace(/^#/, ""));
  for (const kind of KINDS) {
    const token = values.get(kind);
    if (token) return { kind, token };
  }
  return null;
}

/** Removes a link from the address bar and the history, and opens it. */
function openLink(): void {
  const link = parseAccountLink(location.hash);
  if (link === null) return;
  history.replaceState(null, "", location.pathname + location.search);
  accountLink.set(link);
}

/** Watches the address bar for links. */
export function watchAccountLinks(): void {
  openLink();
  addEventListener("hashchange", openLink);
}
