/** Names of stamps, as the server accepts them. */

const NAME = /^[a-z0-9_-]{2,32}$/i;

export function isStampName(text: string): boolean {
  return NAME.test(text);
}

/** Returns a name for a stamp from the name of its file; empty if nothing is left of it. */
export function stampNameOf(fileName: string): string {
  const name = fileName
    .replace(/\.[^.]*$/, "")
    .normalize("NFKD")
    .toLowerCase()
    .replace(/[^a-z0-9_-]+/g, "-")
    .replace(/^-+|-+$/g, "")
    .slice(0, 32);
  return isStampName(name) ? name : "";
}
