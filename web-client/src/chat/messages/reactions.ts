/** Optimistic updates of reactions. */
import type { Message, Reaction } from "../operations";

/** Returns the message with the viewer's reaction added, or removed if the message already has it. */
export function toggleReaction(message: Message, emoji: string): Message {
  const old = message.reactions.find((reaction) => reaction.emoji === emoji);
  if (old === undefined)
    return { ...message, reactions: [...message.reactions, { emoji, count: 1, reacted: true }] };
  const toggled: Reaction = { ...old, reacted: !old.reacted, count: old.count + (old.reacted ? -1 : 1) };
  const reactions = message.reactions.map((reaction) => (reaction === old ? toggled : reaction));
  return { ...message, reactions: reactions.filter(({ count }) => count > 0) };
}
