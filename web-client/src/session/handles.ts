/** The rule for handles, which the server checks too. */

const HANDLE = /^(?!me$)[a-z0-9_]{1,30}$/;

/** Returns the handle that a person means by a typed text, such as `hana` for `@Hana` and for full-width letters. */
export function typedHandle(text: string): string {
  return text.normalize("NFKC").trim().replace(/^@/, "").toLowerCase();
}

/** Returns whether a person may choose the handle. */
export function isHandle(handle: string): boolean {
  return HANDLE.test(handle);
}
