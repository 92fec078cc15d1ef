/** The posts that may need a person: refused credentials, unconfirmed outcomes and failures of the last days. */
import { useCallback } from "react";
import { request, useApi } from "../../api/api";
import { useTranslation } from "../../ui/preferences";
import { PostList } from "../calendar/agenda";
import type { PostChipContext } from "../calendar/chip";
import { useLiveQuery } from "../live-query";
import { type PostState, PostsNeedingAttention, type ScheduledPost } from "../operations";
import { needsPerson } from "./needs-person";
import { timestampOf } from "./posts";

const DAY_MS = 86_400_000;
/** Posts that were due longer ago are only in the calendar. */
const SHOWN_FOR_MS = 14 * DAY_MS;
const MAX_POSTS = 50;
const POST_STATES: PostState[] = ["NEEDS_ATTENTION", "UNKNOWN", "FAILED", "PARTIAL"];

/** Shows nothing while no post needs a person. */
export function AttentionList({ chipContext }: { chipContext: PostChipContext }) {
  const { t } = useTranslation();
  const { direct } = useApi();
  const load = useCallback(async () => {
    const oldest = timestampOf(new Date(Date.now() - SHOWN_FOR_MS));
    const variables = { oldest, states: POST_STATES, limit: MAX_POSTS };
    return (await request(direct, PostsNeedingAttention, variables)).page.items.filter(needsPerson);
  }, [direct]);
  const { data } = useLiveQuery<ScheduledPost[]>(load, null);
  if (!data?.length) return null;
  return (
    <details
      data-attention
      className="thin-scroll max-h-1/2 shrink-0 overflow-auto border-b border-line px-4 py-2"
    >
      <summary className="text-sm font-semibold text-wait">
        {t("publishing.attention", { count: data.length })}
      </summary>
      <div className="mt-2">
        <PostList posts={data} chipContext={chipContext} />
      </div>
    </details>
  );
}
