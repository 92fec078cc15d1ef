/** Reads the user of a token from its claims. The server verifies tokens; the client only compares users. */

interface Claims {
  sub?: unknown;
  org?: unknown;
  name?: unknown;
}

/** Returns a key of the token's organization and user; null if the text is not a token. */
export function identityOf(token: string): string | null {
  const { sub, org } = claimsOf(token);
  if (typeof sub !== "string" || typeof org !== "string") return null;
  return `${encodeURIComponent(org)}/${encodeURIComponent(sub)}`;
}

/** Returns the user as a short text such as "Ann · acme". */
export function userTextOf(token: string): string {
  const { sub, org, name } = claimsOf(token);
  return [name ?? sub, org].filter((part) => typeof part === "string").join(" · ") || "?";
}

function claimsOf(token: string): Claims {
  try {
    const payload = (token.split(".")[1] ?? "").replaceAll("-", "+").replaceAll("_", "/");
    const bytes = Uint8Array.from(atob(payload), (character) => character.charCodeAt(0));
    return Object(JSON.parse(new TextDecoder().decode(bytes)));
  } catch {
    return {};
  }
}
