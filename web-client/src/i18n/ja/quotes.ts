/** Texts of quotes: messages that other messages show. */
import type { quotes as en } from "../en/quotes";
import type { Text } from "../texts";

export const quotes: Record<keyof typeof en, Text> = {
  "quote.action": "引用",
  "quote.label": "引用:",
  "quote.remove": "引用を取り消す",
  "quote.unavailable": "引用されたメッセージは表示できません",
};
