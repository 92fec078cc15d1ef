/** The pinned messages of an open topic, the latest pin first. */
import { type Api, request } from "../../api/api";
import { notifyError } from "../../ui/toasts";
import { createValue, type ObservableValue } from "../../ui/value";
import { type Message, PinMessage, PinnedMessages, UnpinMessage } from "../operations";
import { withChangedPin, withPin } from "./pin-list";

export interface TopicPins {
  messages: ObservableValue<readonly Message[]>;
  /** Loads the pins. A failure is not shown, because the topic works without its pins. */
  load(): void;
  /** Shows a message that somebody has pinned. */
  put(message: Message): void;
  /** Hides a message that somebody has unpinned. */
  remove(id: string): void;
  /** Shows a changed message among the pins, and removes a deleted one. */
  change(message: Message): void;
  /** Pins a message for everybody. A failure is shown. */
  pin(id: string): void;
  /** Unpins a message for everybody. A failure is shown. */
  unpin(id: string): void;
}

export function createTopicPins({ direct }: Api, topicId: string): TopicPins {
  const messages = createValue<readonly Message[]>([]);
  const put = (message: Message) => messages.set(withPin(messages.get(), message));
  const remove = (id: string) => messages.set(messages.get().filter((each) => each.id !== id));

  return {
    messages,
    put,
    remove,
    change: (message) => messages.set(withChangedPin(messages.get(), message)),
    load: () =>
      void request(direct, PinnedMessages, { topicId }).then(
        ({ topic }) => messages.set(topic?.pinnedMessages ?? []),
        () => {},
      ),
    pin: (id) => void request(direct, PinMessage, { id }).then((data) => put(data.pinMessage), notifyError),
    unpin: (id) => void request(direct, UnpinMessage, { id }).then(() => remove(id), notifyError),
  };
}
