/**
 * Reads the user of a credential: of a token from its claims, or of the browser's session, whose cookie scripts can't
 * read. The server verifies credentials; the client only compares users.
 */

const SESSION_PREFIX = "session:";

/** Shows the server that this client sent a request. Pages of other origins can't send the header without CORS. */
const CLIENT_HEADERS = { "noroshi-client": "web" };

/** Headers of requests with a JSON body and the cookie of a session. */
export const JSON_HEADERS = { "content-type": "application/json", ...CLIENT_HEADERS };

/** Returns the credential of the browser's session. It contains no secret. */
export function sessionCredential(organizationId: string, userId: string): string {
  return SESSION_PREFIX + identityText(organizationId, userId);
}

export const isSession = (credential: string): boolean => credential.startsWith(SESSION_PREFIX);

/** Returns the headers of requests with the credential. The browser adds the cookie of a session. */
export function requestHeaders(credential: string): Record<string, string> {
  return isSession(credential) ? CLIENT_HEADERS : { authorization: `Bearer ${credential}` };
}

const identityText = (organizationId: string, userId: string) =>
  `${encodeURIComponent(organizationId)}/${encodeURIComponent(userId)}`;

interface TokenClaims {
  sub?: unknown;
  org?: unknown;
  name?: unknown;
}

/** Returns a key of the credential's organization and user; null if the text is no credential. */
export function identityOf(credential: string): string | null {
  if (isSession(credential)) return credential.slice(SESSION_PREFIX.length);
  const { sub, org } = claimsOf(credential);
  return typeof sub === "string" && typeof org === "string" ? identityText(org, sub) : null;
}

/** Returns the user as a short text such as "Ann · acme". */
export function userTextOf(token: string): string {
  if (isSession(token))
    return (identityOf(token) ?? "").split("/").map(decodeURIComponent).reverse().join(" · ");
  const { sub, org, name } = claimsOf(token);
  return [name ?? sub, org].filter((part) => typeof part === "string").join(" · ") || "?";
}

function claimsOf(token: string): TokenClaims {
  try {
    const payload = (token.split(".")[1] ?? "").replaceAll("-", "+").replaceAll("_", "/");
    const bytes = Uint8Array.from(atob(payload), (character) => character.charCodeAt(0));
    return Object(JSON.parse(new TextDecoder().decode(bytes)));
  } catch {
    return {};
  }
}
