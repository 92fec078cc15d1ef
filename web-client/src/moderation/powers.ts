/** Which roles of a community may act on which. The server checks every request as well. */
import type { CommunityRole } from "./operations";

export interface Powers {
  /** The viewer's role in the community; null if the viewer has not joined it. */
  role: CommunityRole | null;
  /** Whether the viewer is an ADMIN of the organization, who counts as a moderator. */
  isAdmin: boolean;
}

const RANKS: Record<CommunityRole, number> = { MEMBER: 0, MODERATOR: 1, OWNER: 2 };

export const COMMUNITY_ROLES: readonly CommunityRole[] = ["OWNER", "MODERATOR", "MEMBER"];

function rankOf({ role, isAdmin }: Powers): number {
  return Math.max(role ? RANKS[role] : 0, isAdmin ? RANKS.MODERATOR : 0);
}

export function mayModerate(powers: Powers): boolean {
  return rankOf(powers) > 0;
}

/** Returns whether the viewer may mute, kick and ban a person with the role, or without a role (null). */
export function mayActOn(powers: Powers, target: CommunityRole | null): boolean {
  return rankOf(powers) > (target ? RANKS[target] : 0);
}

/** Returns whether the viewer may set roles. Owners also change their own role while another owner remains. */
export function maySetRoles({ role }: Powers): boolean {
  return role === "OWNER";
}
