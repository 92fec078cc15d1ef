/** Parses pasted lists of addresses or domains. The server validates them. */

export const LOOKUP_MAX = 1000;

/**
 * Returns the distinct addresses in a text. They may be on separate lines, separated by commas, semicolons or spaces,
 * and written with names, such as `Ann <ann@example.org>`.
 */
export function addressesIn(text: string): string[] {
  const entries = text.split(/[\n\r,;]+/).map((part) => /<([^<>\s]+)>/.exec(part)?.[1] ?? part.trim());
  // Separate words are separate addresses; display names before "<" are already removed.
  return [...new Set(entries.flatMap((part) => part.split(/\s+/)).filter(Boolean))];
}

/** Returns the distinct domains in a text. An address counts as its domain. */
export function domainsIn(text: string): string[] {
  const parts = text.split(/[\s,;]+/).map((part) => part.replace(/^.*@/, "").replace(/[<>]/g, ""));
  return [...new Set(parts.map((part) => part.toLowerCase()).filter(Boolean))];
}
