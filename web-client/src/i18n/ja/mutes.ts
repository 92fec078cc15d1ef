/** Texts of the viewer's mutes. */
import type { mutes as en } from "../en/mutes";
import type { Text } from "../texts";

export const mutes: Record<keyof typeof en, Text> = {
  "mutes.end": "ミュート解除",
  "mutes.hint": "ミュートした人の投稿はフィードに表示されません。この一覧にあるものからの通知は届きません。",
  "mutes.forGood": "解除するまで",
  "mutes.hiddenParent": "表示できないメッセージへの返信",
  "mutes.howLong": "ミュートする期間",
  "mutes.mute": "{name} をミュート",
  "mutes.muted.COMMUNITY": "{name} からの通知は届かなくなります。",
  "mutes.muted.POST": "この会話からの通知は届かなくなります。",
  "mutes.muted.TOPIC": "{name} からの通知は届かなくなります。",
  "mutes.muted.USER": "{name} をミュートしました。相手には知らされません。",
  "mutes.mutedUntil": "{name} を {until} までミュートしました。",
  "mutes.none": "ミュート中のものはありません",
  "mutes.noneHint":
    "人はプロフィールで、トピック、スレッド、コミュニティは上部のベルで、投稿の会話は投稿のベルでミュートできます。",
  "mutes.notVisible": "表示できなくなりました",
  "mutes.subject.COMMUNITY": "コミュニティ",
  "mutes.subject.POST": "投稿の会話",
  "mutes.subject.THREAD": "スレッド",
  "mutes.subject.TOPIC": "トピック",
  "mutes.subject.USER": "人",
  "mutes.title": "ミュート中の人・場所・会話",
  "mutes.until": "{until} まで",
  "mutes.unmute": "{name} のミュート解除",
  "mutes.unmuted": "{name} のミュートを解除しました",
};
