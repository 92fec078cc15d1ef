/** Texts of posts: replies, reposts, reactions and permalinks. */
import type { posts as en } from "../en/posts";
import type { Text } from "../texts";

export const posts: Record<keyof typeof en, Text> = {
  "post.copyLink": "投稿のリンクをコピー",
  "post.earlier": "返信先",
  "post.edit": "投稿を編集",
  "post.gone": "この投稿は表示できません。",
  "post.inReplyTo": "{name} さんへの返信",
  "post.mute": "この会話をミュート",
  "post.noReplies": "まだ返信はありません",
  "post.noRepliesHint": "最初の返信を書いてみましょう。",
  "post.pictureOf": "画像 {number}/{count}",
  "post.quote": { one: "引用 {count}件", other: "引用 {count}件" },
  "post.quoted": "引用を投稿しました。",
  "post.quoteLabel": "この投稿について書く",
  "post.quoteTitle": "投稿を引用",
  "post.replies": "返信",
  "post.reply": "返信する",
  "post.replyCount": { one: "返信 {count}件", other: "返信 {count}件" },
  "post.replyLabel": "返信を書く",
  "post.repost": { one: "リポスト {count}件", other: "リポスト {count}件" },
  "post.repostedBy": "{name} さんがリポスト",
  "post.title": "投稿",
  "post.unmute": "この会話のミュートを解除",
  "post.unmuted": "この会話からの通知が再び届きます。",
  "post.versions": "編集前の文章",
};
