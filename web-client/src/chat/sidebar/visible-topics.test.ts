import { expect, test } from "vitest";
import type { TopicRow } from "../operations";
import { followedArchives, visibleTopics, withSubscribed } from "./visible-topics";

const topic = (number: number, at = number): TopicRow =>
  ({ id: `t${number}`, lastActivity: `${1_700_000_000 + at}.000000` }) as TopicRow;
const topics = (from: number, to: number) => Array.from({ length: from - to + 1 }, (_, n) => topic(from - n));

test("thirty topics are shown, and a thirty-first means that there are more", () => {
  expect(visibleTopics(topics(100, 71), [])).toMatchObject({ hasMore: false });
  const { topics: shownTopics, hasMore } = visibleTopics(topics(100, 70), []);
  expect([shownTopics.length, shownTopics.at(-1)?.id, hasMore]).toEqual([30, "t71", true]);
});

test("a page starts with the last topic of the previous page, which is shown once", () => {
  const { topics: shown, hasMore } = visibleTopics(topics(100, 70), [
    { hasOlder: true, items: topics(71, 41) },
    { hasOlder: false, items: topics(41, 30) },
  ]);
  expect(shown.map(({ id }) => id)).toEqual(topics(100, 30).map(({ id }) => id));
  expect(hasMore).toBe(false);
});

test("a topic of a later page that becomes active moves to the top", () => {
  const nowActive = topic(41, 500);
  const items = topics(71, 41).with(-1, nowActive);
  expect(visibleTopics([nowActive, ...topics(100, 70)], [{ hasOlder: true, items }]).topics[0]?.id).toBe(
    "t41",
  );
});

test("the most recently visible communities are subscribed to, up to the limit", () => {
  expect(
    ["a", "b", "a", "c"].reduce<readonly string[]>((current, id) => withSubscribed(current, id, 2), []),
  ).toEqual(["c", "a"]);
});

test("archived communities get the subscriptions that visible communities leave", () => {
  expect(followedArchives(["a", "b", "c"], ["d"], 3)).toEqual(["a", "b"]);
  expect(followedArchives(["a"], ["b", "c"], 1)).toEqual([]);
});
