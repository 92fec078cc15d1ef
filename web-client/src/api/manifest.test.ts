import { createRequest, formatDocument, stringifyDocument } from "urql";
import { expect, test } from "vitest";
import { PostMessage, TopicEvents } from "../chat/operations";
import { manifestOf } from "./manifest";

const SOURCES = import.meta.glob<string>("/src/**/*.{ts,tsx}", {
  query: "?raw",
  import: "default",
  eager: true,
});
const IMPORTS_TAG = /^import \{[^}]*\b(graphql|sent|untyped)\b[^}]*\} from "(\.|(\.\.\/)+api)\/graphql";$/m;
const OPERATION = /(query|mutation|subscription) (\w+)/;

const makers = Object.entries(SOURCES).filter(([, source]) => IMPORTS_TAG.test(source));
const manifest = await manifestOf(makers.map(([path]) => path).filter((path) => !path.endsWith(".test.ts")));
const texts = Object.values(manifest);

test("every operation of the sources is in the manifest", () => {
  const written = makers.flatMap(([, source]) => [
    ...source.matchAll(new RegExp(`\`\\s*${OPERATION.source}`, "g")),
  ]);
  const names = new Set(written.map(([, , name]) => name));
  expect(names.size).toBeGreaterThan(150);
  expect(new Set(texts.map((text) => OPERATION.exec(text)?.[2]).filter(Boolean))).toEqual(names);
});

test("texts are those that the clients send with a cache and without one", () => {
  for (const document of [PostMessage, TopicEvents]) {
    const { query } = createRequest(document, {} as never);
    const [direct, cached] = [stringifyDocument(query), stringifyDocument(formatDocument(query))];
    expect(direct).not.toEqual(cached);
    expect(texts).toEqual(expect.arrayContaining([direct, cached]));
  }
});

test("texts that are put together or sent without a client are in the manifest", () => {
  expect(texts).toContain("{ viewer { id organizationId } }");
  const numbers = texts.map((text) => text.match(/\bcurrentText\d+:/g)?.length ?? 0).filter(Boolean);
  const each = Array.from({ length: 20 }, (_, index) => index + 1);
  expect(numbers.sort((one, other) => one - other)).toEqual(each.flatMap((number) => [number, number]));
});

test("ids are the SHA-256 of the texts", async () => {
  const [id = "", text] = Object.entries(manifest)[0] ?? [];
  const digest = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(text));
  expect([...new Uint8Array(digest)]).toEqual(id.match(/../g)?.map((byte) => Number.parseInt(byte, 16)));
});
