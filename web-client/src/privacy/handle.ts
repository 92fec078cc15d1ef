/** Returns whether a typed text is the handle. It may begin with @. */
export function isHandleOf(typed: string, handle: string): boolean {
  return typed.trim().replace(/^@/, "") === handle;
}
