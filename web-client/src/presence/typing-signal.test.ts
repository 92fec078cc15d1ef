import { expect, test } from "vitest";
import { createTypingSignal } from "./typing-signal";

function recorded() {
  const sent: boolean[] = [];
  const clock = { now_ms: 0 };
  const signal = createTypingSignal(
    (isTyping) => sent.push(isTyping),
    () => clock.now_ms,
  );
  return { sent, clock, signal };
}

test("typing is signalled at once, and again after three seconds", () => {
  const { sent, clock, signal } = recorded();
  signal.update("H");
  signal.update("He");
  expect(sent).toEqual([true]);
  clock.now_ms = 3_000;
  signal.update("Hel");
  expect(sent).toEqual([true, true]);
});

test("an empty text and a sent text end the signal once", () => {
  const { sent, signal } = recorded();
  signal.update("H");
  signal.update(" ");
  signal.stop();
  expect(sent).toEqual([true, false]);
  signal.update("He");
  expect(sent).toEqual([true, false, true]);
});

test("nothing is sent before the viewer types", () => {
  const { sent, signal } = recorded();
  signal.update("");
  signal.stop();
  expect(sent).toEqual([]);
});
