/** All communities that the viewer has joined, loaded in pages. */
import { useEffect, useState } from "react";
import type { CombinedError, RequestPolicy } from "urql";
import { useApi } from "../api/api";
import { followParts } from "../timeline/parts";
import { COMMUNITIES_IN_A_PART, Communities, type JoinedCommunity } from "./operations";

export interface Joined {
  /** Undefined until the first page is loaded. */
  communities: readonly JoinedCommunity[] | undefined;
  error: CombinedError | undefined;
  again: () => void;
}

export function useJoined(requestPolicy: RequestPolicy): Joined {
  const { cached } = useApi();
  const [turn, setTurn] = useState(0);
  const [communities, setCommunities] = useState<readonly JoinedCommunity[]>();
  const [error, setError] = useState<CombinedError>();
  // biome-ignore lint/correctness/useExhaustiveDependencies: each turn asks anew.
  useEffect(() => {
    setError(undefined);
    return followParts<JoinedCommunity>((after, onPart) => {
      const asked = { after, limit: COMMUNITIES_IN_A_PART };
      const { unsubscribe } = cached.query(Communities, asked, { requestPolicy }).subscribe((answer) => {
        setError(answer.error);
        const items = answer.data?.communities;
        if (items) onPart({ items, full: items.length === COMMUNITIES_IN_A_PART });
      });
      return unsubscribe;
    }, setCommunities);
  }, [cached, requestPolicy, turn]);
  return { communities, error, again: () => setTurn(turn + 1) };
}
