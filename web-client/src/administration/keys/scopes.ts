/** The scopes of service keys: each is an area of the API and an action, such as `chat:read`. */

export const SCOPES = [
  "identity:read",
  "identity:write",
  "chat:read",
  "chat:write",
  "moderation:read",
  "moderation:write",
  "feed:read",
  "feed:write",
  "files:read",
  "files:write",
  "publishing:read",
  "publishing:write",
  "calls:read",
  "calls:write",
  "calls:report",
  "mail:read",
  "mail:write",
  "mail:ingest",
  "jobs:read",
  "webhooks:read",
  "webhooks:write",
] as const;

/** Returns the scopes by area, in their order. */
export function scopesByArea(scopes: readonly string[]): [area: string, scopes: string[]][] {
  const areas = new Map<string, string[]>();
  for (const scope of scopes) {
    const [area = scope] = scope.split(":");
    areas.set(area, [...(areas.get(area) ?? []), scope]);
  }
  return [...areas];
}

export function actionOf(scope: string): string {
  return scope.split(":")[1] ?? scope;
}
