/** What a reaction does to a message before the server has answered. */
import type { Message, Reaction } from "./operations";

/** The message with the viewer's reaction put there, or taken away when it is there. */
export function toggled(message: Message, emoji: string): Message {
  const old = message.reactions.find((reaction) => reaction.emoji === emoji);
  if (old === undefined)
    return { ...message, reactions: [...message.reactions, { emoji, count: 1, reacted: true }] };
  const step: Reaction = { ...old, reacted: !old.reacted, count: old.count + (old.reacted ? -1 : 1) };
  const reactions = message.reactions.map((reaction) => (reaction === old ? step : reaction));
  return { ...message, reactions: reactions.filter(({ count }) => count > 0) };
}

export const QUICK = ["👍", "❤️", "😂", "🎉", "🔥", "👀", "🙏", "😮", "😢", "✅", "🙌", "💡"];
