/** Texts of the search screen. */
import type { searchTexts as en } from "../en/search";
import type { Text } from "../texts";

export const searchTexts: Record<keyof typeof en, Text> = {
  "palette.searchFor": "「{query}」をメッセージから検索",
  "search.blocked": "ブロック中",
  "search.conversation": "ダイレクトメッセージ",
  "search.deactivated": "停止中",
  "search.filters": "条件を追加",
  "search.incomplete": "よく使われる言葉のため、まだすべてのメッセージを調べ終えていません。",
  "search.kinds": "検索の対象",
  "search.label": "言葉、“フレーズ”、from:名前",
  "search.messages": "メッセージ",
  "search.noName": "名前またはハンドルの先頭を入力してください。検索は 16 語、200 文字までです。",
  "search.none": "見つかりませんでした",
  "search.noneHint": "言葉を減らすか、別の言い方をお試しください。",
  "search.noPeopleHint": "つづりを確かめるか、名前の先頭だけを入力してください。",
  "search.people": "ユーザー",
  "search.posts": "投稿",
  "search.results": "検索結果",
  "search.start": "メッセージ・投稿・トピックを検索",
  "search.startHint": "いま読めるものを、新しい順に表示します。",
  "search.startPeople": "ユーザーを検索",
  "search.startPeopleHint": "名前またはハンドルの先頭を入力してください。組織の全員が対象です。",
  "search.topics": "トピック",
  "search.tooVague": "言葉、フレーズ、または人を入力してください。検索は 16 語、200 文字までです。",
  "search.wrongTerm": "「{term}」を解釈できません。名前や日付をお確かめください。",
};
