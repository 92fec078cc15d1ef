/** Changes of the list of pinned messages, the latest pin first. */
import type { Message } from "../operations";

export function withPin(pins: readonly Message[], message: Message): readonly Message[] {
  return pins.some(({ id }) => id === message.id) ? pins : [message, ...pins];
}

export function withChangedPin(pins: readonly Message[], message: Message): readonly Message[] {
  if (message.deletedAt !== null) return pins.filter(({ id }) => id !== message.id);
  return pins.map((each) => (each.id === message.id ? message : each));
}
