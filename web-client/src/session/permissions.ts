/** The permissions of roles that the screens need. The server checks every request as well. */

/** Calls, connected accounts, the address book, and changes to them. */
export function mayOperate(roles: readonly string[]): boolean {
  return roles.includes("OPERATOR") || roles.includes("ADMIN");
}

/** Reading the address book. */
export function mayReadMail(roles: readonly string[]): boolean {
  return mayOperate(roles) || roles.includes("SERVICE");
}

export function mayLimitCalls(roles: readonly string[]): boolean {
  return roles.includes("ADMIN");
}
