import { expect, test } from "vitest";
import type { Message } from "../operations";
import { withChangedQuotes } from "./changed-quotes";

const message = (id: string, text: string, quoted?: Message) =>
  ({ id, text, quote: quoted ? { message: quoted } : null }) as Message;

test("quotes show the changed message", () => {
  const quoted = message("1", "before");
  const window = { items: [quoted, message("2", "says", quoted)], hasOlder: false, hasNewer: false };
  const changed = withChangedQuotes(window, message("1", "after"));
  expect(changed.items.map(({ quote }) => quote?.message?.text)).toEqual([undefined, "after"]);
});

test("a window without the quote stays the same object", () => {
  const window = { items: [message("2", "says", message("1", ""))], hasOlder: false, hasNewer: false };
  expect(withChangedQuotes(window, message("3", "after"))).toBe(window);
});
