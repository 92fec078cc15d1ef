import { expect, test } from "vitest";
import type { Message } from "../operations";
import { durationText, nextMessageAt } from "./slow-mode";

const message = (author: string, timestamp: string) => ({ author: { id: author }, timestamp }) as Message;

test("a person may write again some time after the person's own last message", () => {
  const messages = [message("ann", "100.000000"), message("ann", "200.000000"), message("ben", "300.000000")];
  expect(nextMessageAt(messages, "ann", 30)).toBe(230_000);
  expect(nextMessageAt(messages, "max", 30)).toBe(0);
  expect(nextMessageAt(messages, "ann", 0)).toBe(0);
});

test("durations have one unit and are rounded up", () => {
  expect(durationText("en", 30)).toBe("30 sec");
  expect(durationText("en", 61)).toBe("2 min");
  expect(durationText("en", 21_600)).toBe("6 hr");
  expect(durationText("ja", 300)).toBe("5 分");
});
