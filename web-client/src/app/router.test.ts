import { expect, test } from "vitest";
import { matchingItems } from "./matching-items";
import { hrefOf, parseRoute, type Route } from "./router";

test("every route is parsed from its own link", () => {
  const routes: Route[] = [
    { name: "home" },
    { name: "tag", tag: "山/川" },
    { name: "person", id: "a b" },
    { name: "threads" },
    { name: "topic", id: "t1", at: null },
    { name: "topic", id: "t1", at: "1700000000.000001" },
    { name: "topic", id: "t1", at: null, thread: "t1-5", reply: null },
    { name: "topic", id: "t1", at: "1700000000.000001", thread: "t1-5", reply: "1700000000.000002" },
    { name: "community", id: "c1", tab: "members", person: null },
    { name: "community", id: "c1", tab: "members", person: "u1" },
    { name: "community", id: "c1", tab: "bans", person: null },
    { name: "search", kind: "messages", query: "" },
    { name: "search", kind: "topics", query: "boat" },
    { name: "search", kind: "posts", query: 'from:ann "a/b" 花火' },
    { name: "calls" },
    { name: "callJob", id: "j1" },
    { name: "bounceRates" },
    { name: "admin" },
    { name: "myData" },
    { name: "adminAudit", actor: null, target: null },
    { name: "adminAudit", actor: null, target: "u1" },
    { name: "adminAudit", actor: "u/1", target: null },
    { name: "adminWebhooks", webhook: null },
    { name: "adminWebhooks", webhook: "w/1" },
    { name: "publishing", view: null, day: null, post: null },
    { name: "publishing", view: "week", day: "2026-11-23", post: null },
    { name: "publishing", view: null, day: null, post: "p1" },
  ];
  for (const route of routes) expect(parseRoute(hrefOf(route))).toEqual(route);
});

test("an unknown fragment is home, and invalid parameters are dropped", () => {
  expect(parseRoute("#/nowhere/%E0%A4%A")).toEqual({ name: "home" });
  expect(parseRoute("#/publishing/year/2026-02-30")).toEqual({
    name: "publishing",
    view: null,
    day: null,
    post: null,
  });
  expect(parseRoute("#/topic/t1/now")).toEqual({ name: "topic", id: "t1", at: null });
});

test("items match that contain every typed word; items that begin with the first word come first", () => {
  const names = ["Film club", "Releases", "The film"];
  expect(matchingItems(names, "film", (name) => name)).toEqual(["Film club", "The film"]);
  expect(matchingItems(names, "ﾌｨﾙﾑ", () => "フィルム")).toHaveLength(3);
});
