import { expect, test } from "vitest";
import type { Post } from "./operations";
import { reactionChange, repostChange, shownRepostCount, withChangedPosts } from "./post-changes";

const post: Post = {
  id: "p",
  timestamp: "1.000000",
  author: { id: "ann", handle: "ann", name: "Ann", avatarUrl: null },
  text: "news",
  mediaUrls: [],
  mentions: [],
  linkPreview: null,
  attachments: [],
  editedAt: null,
  inReplyTo: null,
  replyCount: 0,
  repostCount: 1,
  reposted: false,
  isQuote: false,
  quoteOf: null,
  quoteCount: 0,
  reactions: [{ emoji: "👍", count: 1, reacted: false }],
  muted: false,
  isRepost: false,
  repostOf: null,
};

test("a reaction is added and removed once", () => {
  const add = reactionChange("👍", true);
  const reacted = add(post);
  expect(reacted.reactions).toEqual([{ emoji: "👍", count: 2, reacted: true }]);
  expect(add(reacted)).toBe(reacted);
  expect(reactionChange("👍", false)(reacted).reactions).toEqual(post.reactions);
  const other = reactionChange("🔥", true)(post);
  expect(other.reactions.at(-1)).toEqual({ emoji: "🔥", count: 1, reacted: true });
  expect(reactionChange("🔥", false)(other).reactions).toEqual(post.reactions);
});

test("a repost changes its number once", () => {
  const repost = repostChange(true);
  const reposted = repost(post);
  expect([reposted.reposted, reposted.repostCount]).toEqual([true, 2]);
  expect(repost(reposted)).toBe(reposted);
  expect(repostChange(false)(reposted)).toEqual(post);
});

test("the viewer's own repost is counted although the server's count lags behind", () => {
  expect(shownRepostCount({ ...post, reposted: true, repostCount: 0 })).toBe(1);
  expect(shownRepostCount({ ...post, reposted: true, repostCount: 3 })).toBe(3);
  expect(shownRepostCount({ ...post, reposted: false, repostCount: 0 })).toBe(0);
});

test("a change reaches the post and its reposts", () => {
  const repost: Post = { ...post, id: "r", timestamp: "2.000000", isRepost: true, repostOf: post };
  const other: Post = { ...post, id: "o", timestamp: "3.000000" };
  const window = { items: [post, repost, other], hasOlder: false, hasNewer: false };
  const change = repostChange(true);
  expect(withChangedPosts(window, post.id, change).items).toEqual([
    { ...post, ...change(post) },
    { ...repost, repostOf: change(post) },
    other,
  ]);
});
