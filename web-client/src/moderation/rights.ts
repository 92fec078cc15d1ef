/** The rights of the roles of a community. The server checks every request as well. */
import type { CommunityRole } from "./operations";

export interface CommunityRights {
  /** The viewer's role in the community; null if the viewer has not joined it. */
  role: CommunityRole | null;
  /** Whether the viewer is an ADMIN of the organization, who counts as a moderator. */
  isAdmin: boolean;
}

const RANKS: Record<CommunityRole, number> = { MEMBER: 0, MODERATOR: 1, OWNER: 2 };

export const COMMUNITY_ROLES: readonly CommunityRole[] = ["OWNER", "MODERATOR", "MEMBER"];

function rankOf({ role, isAdmin }: CommunityRights): number {
  return Math.max(role ? RANKS[role] : 0, isAdmin ? RANKS.MODERATOR : 0);
}

export function mayModerate(rights: CommunityRights): boolean {
  return rankOf(rights) > 0;
}

/** Returns whether the viewer may add, mute, kick and ban a person with the role, or without a role (null). */
export function mayActOn(rights: CommunityRights, target: CommunityRole | null): boolean {
  return rankOf(rights) > (target ? RANKS[target] : 0);
}

/** Returns whether the viewer may set roles. Owners also change their own role while another owner remains. */
export function maySetRoles({ role }: CommunityRights): boolean {
  return role === "OWNER";
}
