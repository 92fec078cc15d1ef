import { expect, test } from "vitest";
import type { Message } from "../operations";
import { withChangedPin, withPin } from "./pin-list";

const message = (id: string, text = "", deletedAt: string | null = null) =>
  ({ id, text, deletedAt }) as Message;

test("the latest pin comes first, and a repeated event changes nothing", () => {
  const pins = withPin(withPin([], message("a")), message("b"));
  expect(pins.map(({ id }) => id)).toEqual(["b", "a"]);
  expect(withPin(pins, message("a"))).toBe(pins);
});

test("an edited message is shown with its new text, and a deleted message is no longer a pin", () => {
  const pins = [message("b"), message("a")];
  expect(withChangedPin(pins, message("a", "new"))[1]?.text).toBe("new");
  expect(withChangedPin(pins, message("a", "", "2030-01-01T00:00:00Z"))).toHaveLength(1);
});
