/** Changes of posts that the client shows before and after the server has answered. Repeating one changes nothing. */
import type { TimelineWindow } from "../timeline/window";
import type { Post, PostBody } from "./operations";

export type PostChange = (post: PostBody) => PostBody;

/** Returns the change that adds the viewer's reaction, or removes it. */
export function reactionChange(emoji: string, reacted: boolean): PostChange {
  return (post) => {
    const old = post.reactions.find((reaction) => reaction.emoji === emoji);
    if ((old?.reacted ?? false) === reacted) return post;
    if (old === undefined) return { ...post, reactions: [...post.reactions, { emoji, count: 1, reacted }] };
    const changed = { ...old, reacted, count: old.count + (reacted ? 1 : -1) };
    const reactions = post.reactions.map((reaction) => (reaction === old ? changed : reaction));
    return { ...post, reactions: reactions.filter(({ count }) => count > 0) };
  };
}

/** Returns the change by which the viewer reposts a post, or undoes the repost. */
export function repostChange(reposted: boolean): PostChange {
  return (post) => {
    if (post.reposted === reposted) return post;
    return { ...post, reposted, repostCount: Math.max(0, post.repostCount + (reposted ? 1 : -1)) };
  };
}

/** Returns the number of reposts to show. The server's count may lag behind the viewer's own repost for a moment. */
export function shownRepostCount({ reposted, repostCount }: PostBody): number {
  return reposted ? Math.max(1, repostCount) : repostCount;
}

/** Returns the entry of a feed after the change of a post, which the entry holds or repeats. */
export function withChangedPost<Entry extends Post>(entry: Entry, id: string, change: PostChange): Entry {
  if (entry.repostOf?.id === id) return { ...entry, repostOf: change(entry.repostOf) };
  return entry.id === id ? { ...entry, ...change(entry) } : entry;
}

/** Returns the window after the change of a post: of its own entry and of all reposts. */
export function withChangedPosts(
  window: TimelineWindow<Post>,
  id: string,
  change: PostChange,
): TimelineWindow<Post> {
  return { ...window, items: window.items.map((entry) => withChangedPost(entry, id, change)) };
}
