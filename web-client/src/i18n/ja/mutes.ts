/** Texts of the viewer's mutes. */
import type { mutes as en } from "../en/mutes";
import type { Text } from "../texts";

export const mutes: Record<keyof typeof en, Text> = {
  "mutes.end": "ミュート解除",
  "mutes.hint":
    "ミュートした人の投稿はフィードに表示されません。ミュートした人、トピック、スレッド、コミュニティからの通知は届きません。",
  "mutes.forGood": "解除するまで",
  "mutes.hiddenParent": "表示できないメッセージへの返信",
  "mutes.howLong": "ミュートする期間",
  "mutes.mute": "{name} をミュート",
  "mutes.muted.COMMUNITY": "{name} からの通知は届かなくなります。",
  "mutes.muted.TOPIC": "{name} からの通知は届かなくなります。",
  "mutes.muted.USER": "{name} をミュートしました。相手には知らされません。",
  "mutes.mutedUntil": "{name} を {until} までミュートしました。",
  "mutes.none": "ミュート中のものはありません",
  "mutes.noneHint": "人はプロフィールで、トピック、スレッド、コミュニティは上部のベルでミュートできます。",
  "mutes.notVisible": "表示できなくなりました",
  "mutes.subject.COMMUNITY": "コミュニティ",
  "mutes.subject.THREAD": "スレッド",
  "mutes.subject.TOPIC": "トピック",
  "mutes.subject.USER": "人",
  "mutes.title": "ミュート中の人・トピック・スレッド・コミュニティ",
  "mutes.until": "{until} まで",
  "mutes.unmute": "{name} のミュート解除",
  "mutes.unmuted": "{name} のミュートを解除しました",
};
