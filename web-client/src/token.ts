/** The token in a sign-in link's fragment `#token=…`. A browser never sends the fragment to a server. */

/** Returns the fragment's token, or null. */
export function tokenInFragment(): string | null {
  return new URLSearchParams(location.hash.slice(1)).get("token");
}

/** Returns the fragment's token, or null, and removes the token from the address bar and the history. */
export function takeTokenFromFragment(): string | null {
  const token = tokenInFragment();
  if (token !== null) history.replaceState(null, "", location.pathname + location.search);
  return token;
}
