/** Parses pasted lists of addresses or domains. Validation is the server's. */

export const LOOKUP_MAX = 1000;

/**
 * Returns the distinct addresses of a text: `Ann <ann@example.org>`, one per line, or separated by commas or
 * semicolons.
 */
export function addressesIn(text: string): string[] {
  const entries = text.split(/[\n\r,;]+/).map((part) => /<([^<>\s]+)>/.exec(part)?.[1] ?? part.trim());
  // Separate words are separate addresses; display names before "<" are already removed.
  return [...new Set(entries.flatMap((part) => part.split(/\s+/)).filter(Boolean))];
}

/** Returns the distinct domains of a text; an address counts as its domain. */
export function domainsIn(text: string): string[] {
  const parts = text.split(/[\s,;]+/).map((part) => part.replace(/^.*@/, "").replace(/[<>]/g, ""));
  return [...new Set(parts.map((part) => part.toLowerCase()).filter(Boolean))];
}
