/** The result with which the server sends the browser back from a network, in the query of the address. */

export type ConnectionResult = { accountId: string } | { failure: string };

/** Returns the result in a query such as "?connectedAccount=id"; null if there is none. */
export function connectionResultOf(search: string): ConnectionResult | null {
  const parameters = new URLSearchParams(search);
  const accountId = parameters.get("connectedAccount");
  if (accountId !== null) return { accountId };
  const failure = parameters.get("accountConnectionFailure");
  return failure === null ? null : { failure };
}

/** Returns the result in the address bar, and removes it from there; null if there is none. */
export function takeConnectionResult(): ConnectionResult | null {
  const result = connectionResultOf(location.search);
  if (result !== null) history.replaceState(null, "", location.pathname + location.hash);
  return result;
}
