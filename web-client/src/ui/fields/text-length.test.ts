import { expect, test } from "vitest";
import { excessOf, lengthOf } from "./text-length";

const SOURCES = import.meta.glob<string>("../../**/*.tsx", { query: "?raw", import: "default", eager: true });

test("characters are counted as the server counts them", () => {
  expect(lengthOf(" 火🔥 ")).toBe(2);
  expect(excessOf("火".repeat(4_000), 4_000)).toBe(0);
  expect(excessOf("🔥".repeat(4_001), 4_000)).toBe(1);
});

test("no field cuts what is typed or pasted", () => {
  expect(Object.keys(SOURCES).length).toBeGreaterThan(50);
  const cutting = Object.entries(SOURCES).filter(([, source]) => source.includes("maxLength="));
  expect(cutting.map(([path]) => path)).toEqual([]);
});
