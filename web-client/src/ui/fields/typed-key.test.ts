import { expect, test } from "vitest";
import { typedKey } from "./typed-key";

const enter = { key: "Enter", keyCode: 13, nativeEvent: { isComposing: false } };

test("Enter of an input method is no typed key, also after the composition has ended", () => {
  expect(typedKey(enter)).toBe("Enter");
  expect(typedKey({ ...enter, nativeEvent: { isComposing: true } })).toBe("");
  expect(typedKey({ ...enter, keyCode: 229 })).toBe("");
});

test("every field asks for the typed key before it acts on Enter", () => {
  const sources: Record<string, string> = import.meta.glob("../../**/*.tsx", {
    query: "?raw",
    import: "default",
    eager: true,
  });
  const acting = Object.entries(sources).filter(([, source]) => source.includes('"Enter"'));
  expect(acting.length).toBeGreaterThan(4);
  const careless = acting.filter(([, source]) => /event\.key [!=]== "Enter"|isComposing/.test(source));
  expect(careless.map(([path]) => path)).toEqual([]);
});
