/** Texts of the list that shows how texts are formatted. */
import type { formatting as en } from "../en/formatting";
import type { Text } from "../texts";

export const formatting: Record<keyof typeof en, Text> = {
  "formatting.bold": "太字",
  "formatting.code": "コード",
  "formatting.codeBlock": "複数行のコード",
  "formatting.escaped": "そのまま",
  "formatting.italic": "斜体",
  "formatting.item": "項目",
  "formatting.keys":
    "Ctrl B（⌘ B）で太字、Ctrl I（⌘ I）で斜体になります。コードブロックの中では、Enter で改行、Ctrl Enter で送信します。",
  "formatting.link": "リンク",
  "formatting.quote": "引用",
  "formatting.shown": "表示",
  "formatting.struck": "取り消し線",
  "formatting.title": "書式",
  "formatting.typed": "入力",
};
