import { expect, test } from "vitest";

const SOURCES = import.meta.glob<string>("../**/operations.ts", {
  query: "?raw",
  import: "default",
  eager: true,
});
const SUBSCRIPTION = /subscription (\w+)(\([^)]*\))? \{\s+\w+(\([^)]*\))?([^`]*)/g;

test("every subscription whose events have cursors passes the cursor after which it resumes", () => {
  const subscriptions = Object.values(SOURCES).flatMap((source) => [...source.matchAll(SUBSCRIPTION)]);
  const withCursors = subscriptions.filter(([, , , , fields]) => fields?.includes("cursor"));
  expect(withCursors.length).toBeGreaterThan(8);
  for (const [, name, variables, fieldArguments] of withCursors) {
    expect(variables, name).toContain("$since: Cursor");
    expect(fieldArguments, name).toContain("since: $since");
  }
});
