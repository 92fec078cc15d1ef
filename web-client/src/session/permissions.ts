/** Tells which screens and actions the viewer's roles permit. The server checks every request as well. */

/** Returns whether the roles permit calls, connected accounts, the address book, and changes to them. */
export function mayOperate(roles: readonly string[]): boolean {
  return roles.includes("OPERATOR") || roles.includes("ADMIN");
}

/** Returns whether the roles permit reading the address book. */
export function mayReadMail(roles: readonly string[]): boolean {
  return mayOperate(roles) || roles.includes("SERVICE");
}

export function mayLimitCalls(roles: readonly string[]): boolean {
  return roles.includes("ADMIN");
}

/** Returns whether the roles permit managing the organization's users and reading the audit log. */
export function mayAdminister(roles: readonly string[]): boolean {
  return roles.includes("ADMIN");
}
