/** Texts of the emoji picker. */
import type { emoji as en } from "../en/emoji";
import type { Text } from "../texts";

export const emoji: Record<keyof typeof en, Text> = {
  "emoji.activities": "活動",
  "emoji.emojis": "絵文字",
  "emoji.flags": "旗",
  "emoji.food": "食べ物と飲み物",
  "emoji.frequent": "よく使うもの",
  "emoji.groups": "絵文字の種類",
  "emoji.insert": "絵文字を入力",
  "emoji.nature": "動物と自然",
  "emoji.none": "この名前の絵文字はありません",
  "emoji.objects": "物",
  "emoji.own": "組織のスタンプ",
  "emoji.people": "人",
  "emoji.search": "絵文字を検索",
  "emoji.smileys": "顔と感情",
  "emoji.symbols": "記号",
  "emoji.travel": "旅行と場所",
};
