/** Parses pasted lists of addresses or domains. The server validates them. */

export const LOOKUP_MAX = 1000;

/**
 * Returns the distinct addresses in a text. They may be on separate lines, separated by commas, semicolons or spaces,
 * and written with names, such as `Ann <ann@example.org>`.
 */
export function addressesIn(text: string): string[] {
  const entries = text.split(/[\n\r,;]+/).flatMap((part) => {
    // Words beside an address in angle brackets are the person's name.
    const inBrackets = [...part.matchAll(/<([^<>\s]+)>/g)].map(([, address = ""]) => address);
    return inBrackets.length > 0 ? inBrackets : part.split(/\s+/);
  });
  return [...new Set(entries.filter(Boolean))];
}

/** Returns the addresses of a lookup that no mail can be sent to, because they are not valid. */
export function invalidAddresses(
  standings: readonly { address: string; normalized: string | null }[],
): string[] {
  return standings.filter(({ normalized }) => normalized === null).map(({ address }) => address);
}

/** Returns the distinct domains in a text. An address counts as its domain. */
export function domainsIn(text: string): string[] {
  const parts = text.split(/[\s,;]+/).map((part) => part.replace(/^.*@/, "").replace(/[<>]/g, ""));
  return [...new Set(parts.map((part) => part.toLowerCase()).filter(Boolean))];
}
