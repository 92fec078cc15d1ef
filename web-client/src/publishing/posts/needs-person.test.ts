import { expect, test } from "vitest";
import type { PublicationState, ScheduledPost } from "../operations";
import { needsPerson } from "./needs-person";

function postWith(...states: PublicationState[]): Pick<ScheduledPost, "publications"> {
  const target = { __typename: "HomeFeedTarget" } as ScheduledPost["publications"][number]["target"];
  return { publications: states.map((state, index) => ({ id: String(index), state, target })) };
}

test("A post needs a person while one of its publications was not published", () => {
  expect(needsPerson(postWith("PUBLISHED", "NEEDS_ATTENTION"))).toBe(true);
  expect(needsPerson(postWith("UNKNOWN"))).toBe(true);
  expect(needsPerson(postWith("PUBLISHED", "FAILED"))).toBe(true);
  expect(needsPerson(postWith("PUBLISHED", "CANCELLED"))).toBe(false);
});
