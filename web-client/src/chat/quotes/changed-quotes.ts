/** Keeps the quotes of a window up to date with the messages that they quote. */
import type { TimelineWindow } from "../../timeline/window";
import type { Message } from "../operations";

/** Returns the window in which each quote of the message shows it as it is now; the same object without such a quote. */
export function withChangedQuotes(
  window: TimelineWindow<Message>,
  message: Message,
): TimelineWindow<Message> {
  const isQuoting = ({ quote }: Message) => quote?.message?.id === message.id;
  if (!window.items.some(isQuoting)) return window;
  return {
    ...window,
    items: window.items.map((item) => (isQuoting(item) ? { ...item, quote: { message } } : item)),
  };
}
