/** The list view: posts by day. It is the default on narrow screens. A day's dialog shows the same list of posts. */
import { useTranslation } from "../../ui/preferences";
import { dayText, timeOfDayText } from "../local-times";
import type { ScheduledPost } from "../operations";
import { PostStateBadge } from "../posts/state-badge";
import { targetText } from "../posts/targets";
import type { PostChipContext } from "./chip";

interface Props {
  days: readonly string[];
  today: string;
  postsBySlot: ReadonlyMap<string, readonly ScheduledPost[]>;
  chipContext: PostChipContext;
}

/** Lists the posts of each day. Days without posts are left out. */
export function Agenda({ days, today, postsBySlot, chipContext }: Props) {
  const { language } = useTranslation();
  return (
    <div className="mx-auto flex max-w-3xl flex-col gap-6 p-4 sm:p-6">
      {days
        .filter((day) => postsBySlot.has(day))
        .map((day) => (
          <section key={day} aria-labelledby={`day-${day}`}>
            <h2 id={`day-${day}`} className="mb-2 font-semibold">
              {dayText(language, day, today)}
            </h2>
            <PostList posts={postsBySlot.get(day) ?? []} chipContext={chipContext} />
          </section>
        ))}
    </div>
  );
}

export function PostList({
  posts,
  chipContext,
}: {
  posts: readonly ScheduledPost[];
  chipContext: PostChipContext;
}) {
  return (
    <ul className="flex flex-col gap-2">
      {posts.map((post) => (
        <li key={post.id} className="[contain-intrinsic-size:auto_4.5rem] [content-visibility:auto]">
          <PostRow post={post} chipContext={chipContext} />
        </li>
      ))}
    </ul>
  );
}

function PostRow({ post, chipContext }: { post: ScheduledPost; chipContext: PostChipContext }) {
  const { t, language } = useTranslation();
  const targets = post.publications.map(({ target }) => targetText(target, t)).join(", ");
  return (
    <button
      type="button"
      data-scheduled={post.id}
      data-state={post.state}
      onClick={() => chipContext.openPost(post)}
      className="flex w-full flex-wrap items-start gap-x-3 gap-y-1 rounded-card border border-line bg-raised p-3 text-left hover:bg-hover"
    >
      <span className="grow shrink-0 pt-0.5 sm:w-18 sm:grow-0 text-sm font-semibold tabular-nums">
        {timeOfDayText(language, chipContext.zone, new Date(post.dueAt))}
      </span>
      <span className="order-last min-w-0 grow basis-full sm:order-none sm:basis-0">
        <span className={`line-clamp-2 ${post.state === "CANCELLED" ? "text-quiet line-through" : ""}`}>
          {post.text || t("publishing.onlyMedia")}
        </span>
        <span className="block truncate text-sm text-quiet">{targets}</span>
      </span>
      <PostStateBadge state={post.state} />
    </button>
  );
}
