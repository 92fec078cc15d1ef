/** All communities that the viewer has joined, loaded in pages: the archived ones, and the others. */
import { useEffect, useState } from "react";
import type { CombinedError, RequestPolicy } from "urql";
import { useApi } from "../../api/api";
import { watchPages } from "../../timeline/list-pages";
import { Communities, JOINED_PAGE_SIZE, type JoinedCommunity } from "../operations";

export interface JoinedCommunities {
  /** The communities that are not archived. Undefined until the first page is loaded. */
  communities: readonly JoinedCommunity[] | undefined;
  archived: readonly JoinedCommunity[];
  error: CombinedError | undefined;
  retry: () => void;
}

export function useJoinedCommunities(requestPolicy: RequestPolicy): JoinedCommunities {
  const { cached } = useApi();
  const [attempt, setAttempt] = useState(0);
  const [communities, setCommunities] = useState<readonly JoinedCommunity[]>();
  const [error, setError] = useState<CombinedError>();
  // biome-ignore lint/correctness/useExhaustiveDependencies: each attempt loads the list again.
  useEffect(() => {
    setError(undefined);
    return watchPages<JoinedCommunity>(
      (after, onPage) => {
        const variables = { after, limit: JOINED_PAGE_SIZE };
        const { unsubscribe } = cached
          .query(Communities, variables, { requestPolicy })
          .subscribe((answer) => {
            setError(answer.error);
            const items = answer.data?.communities;
            if (items) onPage({ items, isFull: items.length === JOINED_PAGE_SIZE });
          });
        return unsubscribe;
        // The cached list keeps a community from which the viewer was removed, so such communities are left out below.
      },
      (items) => setCommunities(items.filter(({ joined }) => joined)),
    );
  }, [cached, requestPolicy, attempt]);
  return {
    communities: communities?.filter(({ archivedAt }) => !archivedAt),
    archived: communities?.filter(({ archivedAt }) => archivedAt) ?? [],
    error,
    retry: () => setAttempt(attempt + 1),
  };
}
