/** Finds users of the organization for a person field of an administrator. */
import { useCallback } from "react";
import { request, useApi } from "../api/api";
import { OrganizationUsers } from "./operations";

const SUGGESTIONS_MAX = 6;

/** Returns a function that finds users by a prefix: deactivated users if true, active users if false, all if null. */
export function useUserSearch(deactivated: boolean | null) {
  const { direct } = useApi();
  return useCallback(
    async (query: string) => {
      const variables = { query, deactivated, limit: SUGGESTIONS_MAX };
      return (await request(direct, OrganizationUsers, variables)).organizationUsers;
    },
    [direct, deactivated],
  );
}
