/** Texts of files and pictures. */
import type { files as en } from "../en/files";
import type { Text } from "../texts";

export const files: Record<keyof typeof en, Text> = {
  "avatar.change": "画像を変更",
  "avatar.checking": "確認中…",
  "avatar.choose": "画像を選ぶ",
  "avatar.remove": "画像を削除",
  "avatar.removed": "画像を削除しました",
  "avatar.set": "画像を変更しました",
  "avatar.title": "あなたの画像",
  "file.add": "ファイルを追加",
  "file.alt": "画像の説明（必須）",
  "file.altNamed": "{name} の説明",
  "file.altOptional": "ファイルの説明（任意）",
  "file.chooseAgain": "選び直す",
  "file.chooseAgainNamed": "選び直す: {name}",
  "file.download": "ダウンロード",
  "file.downloadFailed": "ファイルをダウンロードできませんでした。もう一度お試しください。",
  "file.failed": "ファイルを送信できませんでした。もう一度お試しください。",
  "file.gone":
    "メッセージのファイルがこのブラウザーに残っていません。メッセージを破棄して、もう一度書いてください。",
  "file.interrupted":
    "ページが閉じられるまでに {percent} 送信しました。同じファイルを選び直すと続きから送信します。",
  "file.list": "送信するファイル",
  "file.lost": "このファイルはサーバーにありません。もう一度選んでください。",
  "file.nextPicture": "次の画像",
  "file.open": "大きく表示: {name}",
  "file.previousPicture": "前の画像",
  "file.refusal.TOO_MANY_PIXELS": "画像が大きすぎます。小さい画像を選んでください。",
  "file.refusal.TOO_SLOW": "画像の読み込みに時間がかかりすぎます。小さい画像を選んでください。",
  "file.refusal.UNREADABLE": "画像ではないか、壊れているファイルです。",
  "file.remove": "{name} を取り除く",
  "file.sending": "{percent} 送信済み",
  "file.takePicture": "写真を撮る",
  "file.tooMany": "一度に送れるファイルは {count} 件までです",
};
