/** Texts of threads: the replies to a message. */
import type { threads as en } from "../en/threads";
import type { Text } from "../texts";

export const threads: Record<keyof typeof en, Text> = {
  "thread.close": "スレッドを閉じる",
  "thread.follow": "スレッドをフォロー",
  "thread.unfollow": "フォローを解除",
  threads: "スレッド",
  "threads.hiddenParent": "ブロック中の人のメッセージ",
  "threads.more": "スレッドをさらに表示",
  "threads.none": "フォロー中のスレッドはありません",
  "threads.noneHint": "返信したり、返信をもらったり、スレッドで言及されたりすると、自動でフォローします。",
  "threads.read": "既読",
  "threads.unread": "未読",
  "thread.empty": "まだ返信がありません",
  "thread.emptyHint": "下の入力欄から最初の返信を送りましょう。",
  "thread.name": "スレッド「{text}」",
  "thread.of": "スレッド · {topic}",
  "thread.open": "スレッドで返信",
  "thread.parent": "スレッドの元になった {name} さんのメッセージ",
  "thread.replies": { one: "{count}件の返信", other: "{count}件の返信" },
  "thread.reply": "返信",
  "thread.title": "スレッド",
};
