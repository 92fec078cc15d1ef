/** The token that a sign-in link carries in its fragment: `#token=…` never reaches a server or its log. */

/** The fragment's token, or null. */
export function tokenInFragment(): string | null {
  return new URLSearchParams(location.hash.slice(1)).get("token");
}

/** As `tokenInFragment`; a fragment with a token is gone from the address bar and the history afterwards. */
export function takeTokenFromFragment(): string | null {
  const token = tokenInFragment();
  if (token !== null) history.replaceState(null, "", location.pathname + location.search);
  return token;
}
