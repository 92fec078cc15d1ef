import { expect, test } from "vitest";
import { formOf, idsOf, refusalOf } from "./form";
import type { Webhook } from "./operations";

const refused = (field: string) => ({
  graphQLErrors: [{ extensions: { code: "BAD_USER_INPUT", field, expected: "something else" } }],
});

test("a new webhook sends events as JSON, and a changed one keeps its format", () => {
  expect(formOf(null).format).toBe("EVENT");
  const slack = { format: "SLACK", account: { id: "k1" }, topicIds: [] as string[], jobIds: [] as string[] };
  expect(formOf(slack as unknown as Webhook).format).toBe("SLACK");
});

test("ids are read from lines, each once", () => {
  expect(idsOf(" t1\n\nt2 \r\nt1\n")).toEqual(["t1", "t2"]);
  expect(idsOf("")).toEqual([]);
});

test("a refused field is named, with the item of its list", () => {
  const sent = { eventTypes: ["MessagePosted", "PostArrived"] };
  expect(refusalOf(refused("url"), sent)).toEqual({ field: "url", item: null, expected: "something else" });
  expect(refusalOf(refused("eventTypes[1]"), sent)?.item).toBe("PostArrived");
  expect(refusalOf(refused("eventTypes"), sent)?.item).toBeNull();
  expect(refusalOf(refused("eventTypes[7]"), sent)?.item).toBeNull();
});

test("errors about other fields, and other errors, are no refusal of a field", () => {
  expect(refusalOf(refused("idempotencyKey"), {})).toBeNull();
  expect(refusalOf({ graphQLErrors: [{ extensions: { code: "CONFLICT", field: "url" } }] }, {})).toBeNull();
  expect(refusalOf({ networkError: new Error("gone") }, {})).toBeNull();
});
