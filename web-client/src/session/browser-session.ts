/** Requests about the browser's session, whose cookie scripts can't read. */
import { sent } from "../api/graphql";
import { JSON_HEADERS, sessionCredential } from "./identity";

/** REGISTRATION means that everybody may create an account with a password. */
const KNOWN_METHODS = ["OIDC", "PASSKEY", "PASSWORD", "REGISTRATION"];

const SESSION_QUERY = sent("{ viewer { id organizationId } }");

export interface SignInMethod {
  method: string;
  name: string;
  url: string;
}

/** Returns the methods of sign-in that this client knows; an empty list if the request fails. */
export async function fetchSignInMethods(): Promise<SignInMethod[]> {
  try {
    const response = await fetch("/sign-in/options", { cache: "no-store" });
    const { methods } = response.ok ? await response.json() : { methods: [] };
    return methods.filter(({ method }: SignInMethod) => KNOWN_METHODS.includes(method));
  } catch {
    return [];
  }
}

/** Returns the credential of the browser's session; null if there is none. Throws: Error if the server fails. */
export async function fetchSession(): Promise<string | null> {
  const response = await fetch("/graphql", {
    method: "POST",
    headers: JSON_HEADERS,
    body: JSON.stringify({ query: SESSION_QUERY }),
  });
  if (response.status >= 500) throw new Error(`The server answered with status ${response.status}.`);
  const viewer = response.ok ? (await response.json()).data?.viewer : null;
  return viewer ? sessionCredential(viewer.organizationId, viewer.id) : null;
}

/**
 * Ends the browser's session. Returns the URL that ends the session at the identity provider as well; null if there is
 * none. Throws: Error.
 */
export async function endBrowserSession(): Promise<string | null> {
  const response = await fetch("/sign-out", { method: "POST", headers: JSON_HEADERS });
  if (!response.ok) throw new Error(`The server answered with status ${response.status}.`);
  return (await response.json()).signOutUrl;
}

/** Returns the code of a failed sign-in from the address bar, and removes it from there; null if there is none. */
export function takeSignInFailure(): string | null {
  const parameters = new URLSearchParams(location.search);
  const failure = parameters.get("signInFailure");
  if (failure !== null) history.replaceState(null, "", location.pathname + location.hash);
  return failure;
}
