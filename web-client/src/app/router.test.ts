import { expect, test } from "vitest";
import { matchingItems } from "./matching-items";
import { hrefOf, type Place, parsePlace } from "./router";

test("every place is parsed from its own link", () => {
  const places: Place[] = [
    { name: "home" },
    { name: "tag", tag: "山/川" },
    { name: "person", id: "a b" },
    { name: "topic", id: "t1", at: null },
    { name: "topic", id: "t1", at: "1700000000.000001" },
    { name: "community", id: "c1", tab: "members", person: null },
    { name: "community", id: "c1", tab: "members", person: "u1" },
    { name: "community", id: "c1", tab: "bans", person: null },
    { name: "calls" },
    { name: "callJob", id: "j1" },
    { name: "bounceRates" },
    { name: "admin" },
    { name: "myData" },
    { name: "adminAudit", actor: null, target: null },
    { name: "adminAudit", actor: null, target: "u1" },
    { name: "adminAudit", actor: "u/1", target: null },
    { name: "publishing", view: null, day: null, post: null },
    { name: "publishing", view: "week", day: "2026-11-23", post: null },
    { name: "publishing", view: null, day: null, post: "p1" },
  ];
  for (const place of places) expect(parsePlace(hrefOf(place))).toEqual(place);
});

test("an unknown fragment is home, and invalid parameters are dropped", () => {
  expect(parsePlace("#/nowhere/%E0%A4%A")).toEqual({ name: "home" });
  expect(parsePlace("#/publishing/year/2026-02-30")).toEqual({
    name: "publishing",
    view: null,
    day: null,
    post: null,
  });
  expect(parsePlace("#/topic/t1/now")).toEqual({ name: "topic", id: "t1", at: null });
});

test("items that contain every typed word match, and those that begin with it come first", () => {
  const names = ["Film club", "Releases", "The film"];
  expect(matchingItems(names, "film", (name) => name)).toEqual(["Film club", "The film"]);
  expect(matchingItems(names, "ﾌｨﾙﾑ", () => "フィルム")).toHaveLength(3);
});
