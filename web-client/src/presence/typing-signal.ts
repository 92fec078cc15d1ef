/** Signals to others that the viewer is typing. */
import { useEffect, useMemo } from "react";
import { type Api, request, useApi } from "../api/api";
import { PresenceSettings, SetTyping } from "./operations";

/** A signal lasts for 6 s on the server. */
const REPEAT_MS = 3_000;

export interface TypingSignal {
  /** To be called when the viewer has changed the text. */
  update(text: string): void;
  /** To be called when the viewer has sent the text or leaves. */
  stop(): void;
}

export function useTypingSignal(topicId: string): TypingSignal {
  const api = useApi();
  const signal = useMemo(() => createTypingSignal(sender(api, topicId)), [api, topicId]);
  useEffect(() => signal.stop, [signal]);
  return signal;
}

/** Creates a signal. `send` is called at most every 3 s while the viewer types, and once at the end. */
export function createTypingSignal(send: (isTyping: boolean) => void, now = Date.now): TypingSignal {
  let sentAt_ms: number | null = null;
  function stop(): void {
    if (sentAt_ms !== null) send(false);
    sentAt_ms = null;
  }
  return {
    update(text) {
      if (text.trim() === "") return stop();
      if (sentAt_ms !== null && now() - sentAt_ms < REPEAT_MS) return;
      sentAt_ms = now();
      send(true);
    },
    stop,
  };
}

/** Returns a function that sends signals, unless presence is switched off when the first one is due. */
function sender({ direct }: Api, topicId: string): (isTyping: boolean) => void {
  let isOn: Promise<boolean> | null = null;
  async function send(typing: boolean): Promise<void> {
    isOn ??= request(direct, PresenceSettings, {}).then(
      ({ presenceSettings: { shown, enabled } }) => shown && enabled,
    );
    if (await isOn) await request(direct, SetTyping, { topicId, typing });
  }
  // Without the signal, others only do not see that the viewer is typing.
  return (typing) => void send(typing).catch(() => {});
}
