/** What people paste as a list of addresses or domains, taken apart. Whether each is one, the server says. */

export const ASKED_MAX = 1000;

/** Addresses of a pasted text, each once: `Ann <ann@example.org>`, a column, or a list with commas and semicolons. */
export function addressesIn(text: string): string[] {
  const found = text.split(/[\n\r,;]+/).map((part) => /<([^<>\s]+)>/.exec(part)?.[1] ?? part.trim());
  // Words beside each other are addresses of their own; a name with spaces before "<" was taken off already.
  return [...new Set(found.flatMap((part) => part.split(/\s+/)).filter(Boolean))];
}

/** Domains of a pasted text, each once; of an address its domain. */
export function domainsIn(text: string): string[] {
  const parts = text.split(/[\s,;]+/).map((part) => part.replace(/^.*@/, "").replace(/[<>]/g, ""));
  return [...new Set(parts.map((part) => part.toLowerCase()).filter(Boolean))];
}
